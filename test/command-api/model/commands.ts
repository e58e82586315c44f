/** What merchants, providers and operators do: each step runs on the service and on the model. */
import { expect } from '@jest/globals';
import fc from 'fast-check';
import type { LaterResult } from '../../../shared/payment/commands.ts';
import { minor } from '../../../shared/payment/transitions.ts';
import type { Fault } from '../../support/faults-on-demand.ts';
import {
  APPROVED,
  type CommandResponse,
  type InProcess,
} from '../../support/service-in-process.ts';
import { until } from '../../support/until.ts';
import {
  allows,
  amountOf,
  bounce,
  expire,
  fail,
  type Kind,
  type Model,
  newPayment,
  resolve,
  succeed,
} from './arithmetic.ts';

/** `page`: where the shopper is waited for; such a payment is PENDING and has nothing unresolved. */
type Known = { id: string; model: Model; page?: string | undefined };
type Sent = { path: string; body: object; key: string; response: CommandResponse; known: Known };

/** What one sequence knows of its own payments; the service is shared by all sequences. */
export type World = {
  known: Known[];
  sent: Sent[];
  visited: Set<string>;
  tokens: Tokens;
  run: string;
};
type Tokens = { own: string; foreign: string };

export type Step = fc.AsyncCommand<World, InProcess>;
type Meet = Fault | 'none' | 'declined';

const PAYMENTS = '/api/v1/payments';
const DECLINED = '4000000000000002';
/** Its refunds bounce, so the simulator's ledger takes another one in the place of each. */
const BOUNCING = '4000000000004285';
/** 1.00 of it is captured elsewhere: only of this one the simulator's ledger has that. */
const CAPTURED_ELSEWHERE = '4000000000004335';
const NEEDS_SHOPPER = '4000000000003220';
const NOT_ALLOWED = {
  capture: 'CAPTURE_NOT_ALLOWED',
  void: 'VOID_NOT_ALLOWED',
  refund: 'REFUND_NOT_ALLOWED',
} as const;

const disputesIn = ({ disputes = [] }: CommandResponse['json']) =>
  (disputes as { amount: number; status: string }[]).map(({ amount, status }) => ({
    amount,
    status,
  }));

/** The payment of a response is as the model has it. */
const expectAsModelled = ({ json }: CommandResponse, model: Model): void => {
  expect({
    status: json.status,
    captured: json.capturedAmount,
    refunded: json.refundedAmount,
    attempts: json.transactions.map(({ type, result }) => `${type} ${result}`),
    disputes: disputesIn(json),
  }).toEqual({
    status: model.status,
    captured: model.captured,
    refunded: model.refunded,
    attempts: model.attempts,
    disputes: model.disputes,
  });
};

const namedIn = ({ json }: CommandResponse): string =>
  json.paymentId ?? String(json.details?.[0]).replace('paymentId ', '');

/** Sends under a fault; where the outcome gets lost, waits for one look-up that gets no response. */
const sendUnder = async (
  service: InProcess,
  fault: Meet,
  send: () => Promise<CommandResponse>,
  paymentId?: string,
) => {
  if (fault === 'none' || fault === 'declined') return send();
  const { faults } = service;
  const before = faults.lookUps.get(paymentId ?? '') ?? 0;
  const called = faults.calls.length;
  faults.respondsToLookUps = false;
  faults.next(fault);
  const response = await send();
  const wasCalled = faults.calls.length > called;
  if (!wasCalled) faults.forget();
  else if (fault !== 'not sent') {
    const id = paymentId ?? namedIn(response);
    await until('recovery has looked it up', () => (faults.lookUps.get(id) ?? 0) > before);
  }
  faults.respondsToLookUps = true;
  return response;
};

const expectUnavailable = ({ status, json }: CommandResponse): void =>
  expect([status, json.error]).toEqual([503, 'PROVIDER_UNAVAILABLE']);

/** Carries an operation out on the model, under the fault that it met. */
const meet = (
  model: Model,
  kind: Kind,
  requestAmount: number | undefined,
  fault: Meet,
  response: CommandResponse,
) => {
  const amount = amountOf(model, kind, requestAmount);
  if (fault === 'none') {
    succeed(model, kind, amount);
    expect(response.status).toBe(200);
    expectAsModelled(response, model);
    return;
  }
  if (fault === 'answer lost' || fault === 'call lost') {
    model.unresolved = { kind, amount, requestAmount, acted: fault === 'answer lost' };
    expectUnavailable(response);
    return;
  }
  fail(model, kind);
  if (fault === 'declined')
    expect([response.status, response.json.status]).toEqual([402, 'FAILED']);
  else expectUnavailable(response);
};

const create = (amount: number, sale: boolean, fault: Meet, card = APPROVED): Step => ({
  check: () => true,
  run: async (world, service) => {
    // Half of the payments: for the others the ledger too counts what was refunded. A notice of this
    // card would be a reason to ask about an unresolved create.
    const bounces = amount % 2 === 0 && fault === 'none' && card === APPROVED;
    const model = newPayment(sale, bounces);
    const key = `${world.run}-${world.sent.length}-create`;
    const number = fault === 'declined' ? DECLINED : bounces ? BOUNCING : card;
    const fields = { amount, captureNow: sale, number };
    const asking = { token: world.tokens.own, key };
    const response = await sendUnder(service, fault, () => service.create(fields, asking));
    const known = { id: namedIn(response), model };
    // What becomes of it later is a step of its own, and not what the card makes the simulator say.
    service.faults.later.set(known.id, []);
    meet(model, 'create', amount, fault, response);
    world.known.push(known);
    // A repeat makes its body again from these fields.
    world.sent.push({ path: PAYMENTS, body: fields, key, response, known });
  },
  toString: () => `create ${amount}${sale ? ' sale' : ''} (${fault})`,
});

const change = (
  kind: Exclude<Kind, 'create'>,
  pick: number,
  share: number | undefined,
  fault: Meet,
): Step => ({
  check: ({ known }) => known.length > 0,
  run: async (world, service) => {
    const known = world.known[pick % world.known.length];
    if (known === undefined) return;
    const { id, model } = known;
    const whole = kind === 'refund' ? model.captured - model.refunded : model.authorized;
    const requestAmount =
      share === undefined || kind === 'void' ? undefined : Math.max(1, Math.floor(whole * share));
    const body = requestAmount === undefined ? {} : { [`${kind}Amount`]: requestAmount };
    const asking = { token: world.tokens.own };
    world.visited.add(
      `${model.status}${model.unresolved === undefined ? '' : ' unresolved'} x ${kind}`,
    );
    // Where the service has to look an unresolved operation up first, the provider responds.
    const met = model.unresolved === undefined ? fault : 'none';
    const send = () => service.change(kind, id, body, asking);
    const response = await sendUnder(service, met, send, id);
    const resolved = resolve(model);
    if (resolved?.kind === kind && resolved.requestAmount === requestAmount) {
      // An equal command joins the unresolved one and gets its outcome.
      if (resolved.acted) expect(response.status).toBe(200);
      else expectUnavailable(response);
    } else if (allows(model, kind, requestAmount)) meet(model, kind, requestAmount, met, response);
    else expect([response.status, response.json.error]).toEqual([422, NOT_ALLOWED[kind]]);
  },
  toString: () => `${kind} #${pick} ${share ?? 'all'} (${fault})`,
});

/** A create for which the provider wants the shopper. */
const wait = (amount: number, sale: boolean): Step => ({
  check: () => true,
  run: async (world, service) => {
    const key = `${world.run}-${world.sent.length}-wait`;
    const authentication = { returnUrl: 'https://shop.example/back' };
    const dates = { expiryMonth: '12', expiryYear: '2030' };
    const card = { number: NEEDS_SHOPPER, holderName: 'Jane Doe', ...dates, authentication };
    const fields = { amount, captureNow: sale, paymentMethod: { type: 'CARD', card } };
    const response = await service.create(fields, { token: world.tokens.own, key });
    expect([response.status, response.json.status]).toEqual([202, 'PENDING']);
    const { url } = response.json.nextAction as { url: string };
    const id = response.json.paymentId;
    const known = { id, model: newPayment(sale, false), page: new URL(url).pathname };
    service.faults.later.set(id, []);
    world.known.push(known);
    world.sent.push({ path: PAYMENTS, body: fields, key, response, known });
  },
  toString: () => `wait ${amount}${sale ? ' sale' : ''}`,
});

/** The shopper comes to one that waits. */
const come = (pick: number, action: 'authenticate' | 'fail'): Step => ({
  check: ({ known }) => known.some(({ page }) => page !== undefined),
  run: async (world, service) => {
    const waiting = world.known.filter(({ page }) => page !== undefined);
    const known = waiting[pick % waiting.length];
    if (known === undefined) return;
    const pressed = await service.ask('POST', `${known.page}/${action}`, undefined, {
      token: null,
    });
    expect(pressed.status).toBe(303);
    known.page = undefined;
    const asking = { token: world.tokens.own };
    const { amount } = (await service.get(known.id, asking)).json;
    if (action === 'authenticate') succeed(known.model, 'create', amount);
    else fail(known.model, 'create');
    world.visited.add(`come to ${action}`);
    service.faults.notice(known.id);
    const ended = async () => (await service.get(known.id, asking)).json.status !== 'PENDING';
    await until('it has its outcome', ended);
    expectAsModelled(await service.get(known.id, asking), known.model);
  },
  toString: () => `come #${pick} (${action})`,
});

const get = (pick: number): Step => ({
  check: ({ known }) => known.length > 0,
  run: async (world, service) => {
    const known = world.known[pick % world.known.length];
    if (known === undefined) return;
    const response = await service.get(known.id, { token: world.tokens.own });
    expect(response.status).toBe(200);
    expectAsModelled(response, known.model);
    const foreign = await service.get(known.id, { token: world.tokens.foreign });
    expect([foreign.status, foreign.json.error]).toEqual([404, 'PAYMENT_NOT_FOUND']);
  },
  toString: () => `get #${pick}`,
});

/** A repeat under a key gets the same bytes, or the outcome of what was unknown. */
const repeat = (pick: number): Step => ({
  check: ({ sent }) => sent.length > 0,
  run: async (world, service) => {
    const was = world.sent[pick % world.sent.length];
    if (was === undefined) return;
    const { model } = was.known;
    const unresolvedCreate = model.unresolved?.kind === 'create' ? model.unresolved : undefined;
    const isFree =
      was.response.status === 503 && !(unresolvedCreate?.acted ?? model.authorized > 0);
    // A free key makes a new payment; the model follows only the first.
    if (isFree) return;
    if (unresolvedCreate !== undefined) resolve(model);
    const response = await service.create(was.body, { token: world.tokens.own, key: was.key });
    const { status } = was.response;
    const now = model.status === 'PENDING' ? 202 : model.status === 'FAILED' ? 402 : 200;
    if (status === 503 || (status === 202 && now !== 202)) expect(response.status).toBe(now);
    else expect([response.status, response.text]).toEqual([was.response.status, was.response.text]);
    expect(response.headers['idempotent-replayed']).toBe('true');
  },
  toString: () => `repeat #${pick}`,
});

/** What a provider says later. */
export const LATER_KINDS = [
  'AUTHORIZATION_EXPIRED',
  'REFUND_FAILED',
  'REFUND_OBSERVED',
  'CAPTURE_OBSERVED',
  'VOID_OBSERVED',
  'DISPUTED',
  'DISPUTE_WON',
  'DISPUTE_LOST',
] as const;
type LaterKind = (typeof LATER_KINDS)[number];

const disputed = (
  { id, model }: Known,
  kind: LaterKind,
  share: number,
): LaterResult | undefined => {
  const last = model.disputes.at(-1);
  const status = kind === 'DISPUTED' ? 'OPEN' : kind === 'DISPUTE_WON' ? 'WON' : 'LOST';
  if (status === 'OPEN' && (model.captured === 0 || last?.status === 'OPEN')) return undefined;
  if (status === 'OPEN')
    model.disputes.push({ amount: Math.max(1, Math.floor(model.captured * share)), status });
  else if (last?.status === 'OPEN') last.status = status;
  else return undefined;
  const disputeId = `du_${id.slice(-20)}_${model.disputes.length}`;
  const { amount = 0 } = model.disputes.at(-1) ?? {};
  return { kind: 'DISPUTE', disputeId, amount: minor(amount), reason: 'fraudulent', status };
};

/** What the provider says next of a payment, where it fits; undefined where nothing does. */
const nextLater = (
  kind: LaterKind,
  known: Known,
  share: number,
  said: LaterResult[],
  shown: CommandResponse,
): LaterResult | undefined => {
  const { id: paymentId, model } = known;
  if (kind === 'AUTHORIZATION_EXPIRED') {
    if (model.status !== 'AUTHORIZED') return undefined;
    expire(model);
    return { kind };
  }
  if (kind === 'REFUND_FAILED') {
    const at = bounce(model);
    const id = shown.json.transactions[at ?? -1]?.id;
    if (id === undefined) return undefined;
    // A transaction is named after its operation.
    const operationId = id.replace('REFN_', 'op_');
    return { kind, operationId, failureCode: 'PROCESSING_ERROR' };
  }
  const reference = `pi_${paymentId.slice(-20)}`;
  if (kind === 'CAPTURE_OBSERVED') {
    const amount = 100;
    succeed(model, 'capture', amount);
    return { kind, reference, amount: minor(amount) };
  }
  if (kind === 'VOID_OBSERVED') {
    if (model.status !== 'AUTHORIZED') return undefined;
    succeed(model, 'void', model.authorized);
    return { kind, reference };
  }
  if (kind !== 'REFUND_OBSERVED') return disputed(known, kind, share);
  const left = model.captured - model.refunded;
  const amount = Math.floor(left * share);
  if (model.status !== 'CAPTURED' || amount < 1) return undefined;
  succeed(model, 'refund', amount);
  return { kind, refundId: `re_${paymentId.slice(-20)}_${said.length}`, amount: minor(amount) };
};

/** The payment that it is said of. Few have a refund that can bounce or an open dispute: one is made. */
const subjectOf = async (
  world: World,
  service: InProcess,
  kind: LaterKind,
  pick: number,
  share: number,
): Promise<Known | undefined> => {
  const isCapture = kind === 'CAPTURE_OBSERVED';
  const isOfNew = ['REFUND_FAILED', 'DISPUTE_WON', 'DISPUTE_LOST'].includes(kind);
  if (!isOfNew && !isCapture) return world.known[pick % world.known.length];
  // Refunds of an even amount bounce.
  const card = isCapture ? CAPTURED_ELSEWHERE : undefined;
  await create(200 + 2 * pick, !isCapture, 'none', card).run(world, service);
  const at = world.known.length - 1;
  if (isCapture) return world.known[at];
  if (kind === 'REFUND_FAILED') await change('refund', at, 0.5, 'none').run(world, service);
  else await later('DISPUTED', at, share).run(world, service);
  return world.known[at];
};

/**
 * The provider says of a payment all that has become of it so far, and something new. After a refund
 * that bounced, the merchant refunds again.
 */
const later = (kind: LaterKind, pick: number, share: number): Step => ({
  check: ({ known }) => known.some(({ model }) => model.unresolved === undefined),
  run: async (world, service) => {
    const { faults, get: read } = service;
    const known = await subjectOf(world, service, kind, pick, share);
    if (known === undefined || known.model.unresolved !== undefined) return;
    const ask = () => read(known.id, { token: world.tokens.own });
    const said = faults.later.get(known.id) ?? [];
    const shown = await ask();
    const result = nextLater(kind, known, share, said, shown);
    if (result === undefined) return;
    faults.later.set(known.id, [...said, result]);
    const before = shown.text;
    world.visited.add(`later ${kind}`);
    faults.notice(known.id);
    await until('it is recorded', async () => (await ask()).text !== before);
    expectAsModelled(await ask(), known.model);
    if (result.kind !== 'REFUND_FAILED') return;
    world.visited.add('refund after a bounce');
    await change('refund', world.known.indexOf(known), share, 'none').run(world, service);
  },
  toString: () => `${kind} #${pick} ${share}`,
});

const restart = (): Step => ({
  check: () => true,
  run: async (world, service) => {
    await service.restart();
    for (const { id, model } of world.known) {
      resolve(model);
      await until('the unresolved operation is resolved', async () => {
        const { json } = await service.get(id, { token: world.tokens.own });
        return json.transactions?.length === model.attempts.length;
      });
    }
  },
  toString: () => 'restart',
});

/** The read models stand still for one change, which GET shows nevertheless. */
const holdProjector = (pick: number): Step => ({
  check: ({ known }) => known.some(({ model }) => model.unresolved === undefined),
  run: async (world, service) => {
    service.readModels.hold();
    await create(100 + pick, true, 'none').run(world, service);
    await get(world.known.length - 1).run(world, service);
    service.readModels.release();
  },
  toString: () => 'projector held',
});

const amount = fc.integer({ min: 1, max: 5000 });
const pick = fc.nat({ max: 20 });
const share = fc.option(fc.constantFrom(0.2, 0.5, 1, 2), { nil: undefined });
const fault = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Meet>('none') },
  { weight: 3, arbitrary: fc.constantFrom<Meet>('answer lost', 'call lost', 'not sent') },
);
const createFault = fc.oneof(fault, fc.constant<Meet>('declined'));
const laterKind = fc.constantFrom<LaterKind>(...LATER_KINDS);
const changeKind = fc.constantFrom('capture', 'void', 'refund', 'refund');

/**
 * Sequences of steps; with `slow` also a restart and a projector that stands still, with `afterwards`
 * also what a provider says later, and payments that wait for their shopper.
 */
export const steps = (length: number, slow: boolean, afterwards: boolean) =>
  fc.commands<World, InProcess, false>(
    [
      fc.tuple(amount, fc.boolean(), createFault).map((args) => create(...args)),
      fc
        .tuple(changeKind, pick, share, fault)
        .map((args) => change(...(args as Parameters<typeof change>))),
      fc
        .tuple(changeKind, pick, share, fault)
        .map((args) => change(...(args as Parameters<typeof change>))),
      pick.map(get),
      pick.map(repeat),
      ...(afterwards
        ? [
            fc.tuple(laterKind, pick, fc.constantFrom(0.2, 1)).map((args) => later(...args)),
            fc.tuple(amount, fc.boolean()).map((args) => wait(...args)),
            fc.tuple(pick, fc.constantFrom('authenticate', 'fail')).map((args) => come(...args)),
          ]
        : []),
      ...(slow ? [fc.constant(null).map(restart), pick.map(holdProjector)] : []),
    ] as fc.Arbitrary<Step>[],
    { maxCommands: length },
  );
