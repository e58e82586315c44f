/** Erases texts of a person (gaps §19): the event, then the keys that it names, then the answer. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RecordedPaymentEvent } from '../../shared/event-store/fold-stream.ts';
import type { EventContext } from '../../shared/event-store/port.ts';
import { cursorOf, placeAfter } from '../../shared/http/cursor.ts';
import { RETRY_LATER, reject } from '../../shared/http/errors.ts';
import { contextOf, onlyOf, type Principal, senderOf } from '../../shared/http/request.ts';
import { type Budget, RECORD_BUDGET_MS, startBudget } from '../../shared/http/request-budget.ts';
import {
  asJson,
  jsonBody,
  okJson,
  type RoutesOf,
  routeWith,
  sendJson,
} from '../../shared/http/route.ts';
import type {} from '../../shared/http/server/app.ts';
import type { EraseCommand, HoldCommand } from '../../shared/payment/commands.ts';
import { APPROVAL_MS_MAX, type Decision } from '../../shared/payment/decide.ts';
import {
  type OpenText,
  openPersonal,
  type PaymentReadModel,
  type PaymentState,
} from '../../shared/payment/state.ts';
import type { ReadModelsReader } from '../../shared/read-models/port.ts';
import type { Config } from '../../shared/runtime/config.ts';
import { newOperationId } from '../../shared/runtime/ids.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { Queues } from '../../shared/runtime/scheduling.ts';
import * as contract from './contract.ts';
import type { Erasures } from './erasures.ts';

type Loaded = { events: readonly RecordedPaymentEvent[]; state: PaymentState };
type Executed = { kind: 'done'; payment: Loaded } | Exclude<Decision, { kind: 'events' }>;

export type ErasureDeps = {
  /** The command API's way to decide and append. */
  commands: {
    paymentLog: {
      load(paymentId: string, from: 'store'): Promise<Loaded | undefined>;
      execute(
        ...given: [string, EraseCommand | HoldCommand, EventContext, Budget]
      ): Promise<Executed>;
    };
    queues: Pick<Queues, 'run'>;
    nowMs(): number;
    logger: Logger;
  };
  openText: OpenText;
  record(request: FastifyRequest, access: { action: 'PEOPLE' }): Promise<void>;
  readModels: Pick<ReadModelsReader, 'search'>;
  erasures: Pick<Erasures, 'carryOut'>;
  config: Pick<Config, 'erasure'>;
};

type Order = Omit<EraseCommand, 'operationId'> | Omit<HoldCommand, 'operationId'>;

const NOT_YET = 'the erasure is recorded, and its keys are erased within minutes: repeat it sooner';

const execute = async (
  { commands, erasures }: Pick<ErasureDeps, 'commands' | 'erasures'>,
  { principal, paymentId }: { principal: Principal; paymentId: string },
  reply: FastifyReply,
  order: Order,
): Promise<FastifyReply> => {
  const { paymentLog, queues } = commands;
  const only = onlyOf(principal);
  const known = await paymentLog.load(paymentId, 'store');
  if (known === undefined || (only ?? known.state.merchantId) !== known.state.merchantId)
    return reject(reply, 'PAYMENT_NOT_FOUND');
  reply.request.paymentId = paymentId;
  const command = { ...order, operationId: newOperationId() };
  const context = contextOf(senderOf(principal, reply));
  const executed = await queues.run(paymentId, () =>
    paymentLog.execute(paymentId, command, context, startBudget(RECORD_BUDGET_MS)),
  );
  if (executed.kind === 'refused') return reject(reply, executed.code, executed.details);
  if (executed.kind !== 'done') throw new Error(`an erasure cannot be ${executed.kind}`);
  const { events, state } = executed.payment;
  const { requested, heldBy } = state.erasure;
  const { erasedAt } = state.personal;
  try {
    await erasures.carryOut(events);
  } catch (error) {
    commands.logger.error({ paymentId, err: error }, 'the keys of an erased payment stay for now');
    return reject(reply, 'SERVICE_UNAVAILABLE', [NOT_YET], RETRY_LATER);
  }
  const isOpen = order.kind === 'erase' && erasedAt === undefined && requested !== undefined;
  const expiresAt = new Date(Date.parse(requested?.at ?? '0') + APPROVAL_MS_MAX).toISOString();
  const open = isOpen && { requestedBy: requested.requestedBy, expiresAt };
  const body: contract.ErasureBody = { paymentId, heldBy, erasedAt, ...open };
  return sendJson(reply.code(isOpen ? 202 : 200), body);
};

const FOUND_MAX = 1_000;
const LOOKED_AT_MAX = 20_000;
const PAGE = 100;

const comparable = (email = ''): string => email.normalize('NFC').trim().toLowerCase();

/** Looks into the boxes of a merchant's payments, newest first: what is not indexed needs no erasing. */
const findPerson = async (
  { readModels, openText }: Pick<ErasureDeps, 'readModels' | 'openText'>,
  merchantId: string | undefined,
  email: string,
  from: ReturnType<typeof placeAfter>,
): Promise<contract.PeopleFound> => {
  const payments: string[] = [];
  let after = from;
  for (let looked = 0; looked < LOOKED_AT_MAX && payments.length < FOUND_MAX; looked += PAGE) {
    const { documents, searchedTo } = await readModels.search({ merchantId, after }, PAGE);
    for (const { paymentId, body, damaged } of documents) {
      if (damaged) continue;
      const opened = await openPersonal(openText, JSON.parse(body) as PaymentReadModel);
      const found = 'text' in opened && comparable(opened.text.consumer?.email);
      if (found === comparable(email)) payments.push(paymentId);
    }
    if (searchedTo === undefined) return { payments };
    after = searchedTo;
  }
  return { payments, ...(after && { next: cursorOf(after) }) };
};

const paymentId = 'INVALID_PAYMENT_ID' as const;
const route = routeWith<ErasureDeps>();

export const ERASURE_ROUTES = {
  erasePayment: route({
    request: { person: true, paymentId, ...jsonBody(contract.EraseRequest) },
    responses: { ...okJson(contract.ErasureBody), 202: asJson(contract.ErasureBody) },
    handle: (deps, input, reply) => {
      const { actor } = input.principal;
      const about = { actor, atMs: deps.commands.nowMs(), ...deps.config.erasure };
      return execute(deps, input, reply, { kind: 'erase', ...input.content, ...about });
    },
  }),
  holdErasure: route({
    request: { person: true, paymentId, ...jsonBody(contract.HoldRequest) },
    responses: okJson(contract.ErasureBody),
    handle: (deps, input, reply) =>
      execute(deps, input, reply, { kind: 'hold', ticket: input.content.ticket }),
  }),
  releaseErasure: route({
    request: { person: true, paymentId },
    responses: okJson(contract.ErasureBody),
    handle: (deps, input, reply) =>
      execute(deps, input, reply, { kind: 'hold', ticket: undefined }),
  }),
  searchPeople: route({
    request: jsonBody(contract.PeopleSearch),
    responses: okJson(contract.PeopleFound),
    handle: async (deps, { principal, content: { email, after } }, reply) => {
      const place = after === undefined ? undefined : placeAfter(after);
      if (after !== undefined && place === undefined)
        return reject(reply, 'INVALID_REQUEST', ['after must be the next of an earlier page']);
      await deps.record(reply.request, { action: 'PEOPLE' });
      return sendJson(reply, await findPerson(deps, onlyOf(principal), email, place));
    },
  }),
} satisfies Partial<RoutesOf<'command-api', ErasureDeps>>;
