/**
 * Asks the provider about unresolved operations, and fences those never carried out (gaps §7). None is sent
 * again; unknown never becomes failed. Any number of processes may ask: the exact revision lets one record.
 */
import {
  type ActionRequired,
  AT_WORK,
  type OperationQuestion,
  type Provider,
} from '../../providers/port.ts';
import type { FinalOutcomeDetails } from '../../shared/payment/commands.ts';
import {
  authorizationOf,
  type Operation,
  unconfirmedOperations,
  unresolvedOperations,
} from '../../shared/payment/state.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { Queues } from '../../shared/runtime/scheduling.ts';
import { type InFlight, intentTimeOf } from '../in-flight.ts';
import { BY_RECOVERY, type LoadedPayment, operationOf, type PaymentLog } from '../payment-log.ts';

export type AskDeps = {
  paymentLog: PaymentLog;
  provider: Provider;
  queues: Queues;
  inFlight: InFlight;
  nowMs(): number;
  logger: Logger;
};

export const CHANGE_KINDS = { capture: 'CAPTURE', void: 'VOID', refund: 'REFUND' } as const;

export const questionAbout = (
  { events, state }: Pick<LoadedPayment, 'events' | 'state'>,
  operation: Operation,
): OperationQuestion => {
  const { operationId, amount, kind, provider, reference } = operation;
  const { authentication, waitsUntil } = operation;
  const { paymentId, merchantId, currency, captureNow } = state;
  const createKind = captureNow ? 'SALE' : 'AUTHORIZE';
  return {
    operationId,
    paymentId,
    merchantId,
    kind: kind === 'create' ? createKind : CHANGE_KINDS[kind],
    amount,
    currency,
    requestedAt: intentTimeOf({ events, state }, operation),
    provider,
    reference,
    authentication,
    waitsUntil,
    ...(kind !== 'create' && authorizationOf(state)),
  };
};

/** A provider that says "at work" for longer than a day will never give an outcome. */
const AT_WORK_MS_MAX = 86_400_000;

type Asking = Pick<AskDeps, 'provider' | 'nowMs'>;

const askOrFence = async (
  { provider, nowMs }: Asking,
  payment: LoadedPayment,
  operation: Operation,
): Promise<FinalOutcomeDetails | ActionRequired | 'at work' | undefined> => {
  const question = questionAbout(payment, operation);
  const found = await provider.lookUp(question);
  const { waitsUntil } = operation;
  // A shopper who comes just in time is found by the fence.
  const isLate = waitsUntil !== undefined && nowMs() >= Date.parse(waitsUntil);
  if (found.outcome === 'ACTION_REQUIRED' && !isLate) return found;
  const isUndone = found.outcome === 'ACTION_REQUIRED' || found.outcome === 'NOT_FOUND';
  // A bare "not found" decides nothing: the operation may still be on its way.
  const response = isUndone ? await provider.fence(question) : found;
  if (response.outcome !== 'UNKNOWN') return response;
  const ageMs = nowMs() - Date.parse(question.requestedAt);
  return response.reason === AT_WORK && ageMs < AT_WORK_MS_MAX ? 'at work' : undefined;
};

/** While it waits for the shopper the provider is at work. */
export const askProvider = async (
  deps: Asking,
  payment: LoadedPayment,
  operation: Operation,
): Promise<FinalOutcomeDetails | 'at work' | undefined> => {
  const said = await askOrFence(deps, payment, operation);
  return said !== 'at work' && said?.outcome === 'ACTION_REQUIRED' ? 'at work' : said;
};

const askAndRecord = async (
  deps: AskDeps,
  payment: LoadedPayment,
  operation: Operation,
): Promise<LoadedPayment> => {
  if (deps.inFlight.leftMsOf(payment, operation) > 0) return payment;
  const { paymentId } = payment.state;
  const { operationId, kind } = operation;
  const outcome = await askOrFence(deps, payment, operation);
  const isWanted = typeof outcome === 'object' && outcome.outcome === 'ACTION_REQUIRED';
  if (isWanted || operation.waitsUntil !== undefined)
    deps.inFlight.noteLookUp(operationId, isWanted ? outcome.url : undefined);
  if (outcome === undefined || outcome === 'at work') return payment;
  if (isWanted) {
    const expiresAt = deps.inFlight.waitsUntil(outcome);
    const command = { kind: 'authenticate', operationId, expiresAt } as const;
    return deps.paymentLog.record(payment, command, BY_RECOVERY);
  }
  const command = { kind: 'record', operationId, ...outcome } as const;
  const recorded = await deps.paymentLog.record(payment, command, BY_RECOVERY);
  const { ended } = operationOf(recorded, operationId);
  // Its call has opened something at the provider since: the next question names it.
  if (ended === undefined)
    deps.logger.warn({ paymentId, operation: kind }, 'a fence came too early: it is not recorded');
  else
    deps.logger.info({ paymentId, operation: kind, outcome: ended.outcome }, 'outcome recovered');
  return recorded;
};

/** Call it in the payment's queue. A false `goOn` stops it between two questions. */
export const resolveByAsking = async (
  deps: AskDeps,
  paymentId: string,
  goOn: () => boolean,
): Promise<LoadedPayment | undefined> => {
  let payment = await deps.paymentLog.load(paymentId, 'store');
  for (const operation of unresolvedOperations(payment?.state)) {
    // One question may take the provider's whole timeout.
    if (payment === undefined || !goOn()) break;
    payment = await askAndRecord(deps, payment, operation);
  }
  return payment;
};

const confirmOne = async (
  deps: AskDeps,
  payment: LoadedPayment,
  operation: Operation,
): Promise<LoadedPayment> => {
  const outcome = await askProvider(deps, payment, operation);
  if (outcome === undefined || outcome === 'at work') return payment;
  const { paymentId } = payment.state;
  const { operationId, kind, amount, ended } = operation;
  const command = { kind: 'confirm', operationId, ...outcome } as const;
  const after = await deps.queues.run(paymentId, () =>
    deps.paymentLog.record(payment, command, BY_RECOVERY),
  );
  const { confirmation } = operationOf(after, operationId);
  const said = { recorded: ended?.outcome, provider: outcome.outcome };
  const fields = { paymentId, operation: kind, operationId, amount, ...said };
  if (confirmation === undefined)
    deps.logger.info(fields, 'the provider confirmed what was resolved by hand');
  else if (operation.confirmation === 'UNCONFIRMED')
    deps.logger.error(
      fields,
      'the provider contradicts what was resolved by hand; nothing is rewritten: see payments unresolved',
    );
  return after;
};

/**
 * Asks on about what was resolved by hand until the provider is definite (gaps §16, ADR-0099),
 * outside the queue so that no command waits. A contradiction is recorded, and nothing rewritten.
 */
export const confirmByAsking = async (
  deps: AskDeps,
  payment: LoadedPayment,
  goOn: () => boolean,
): Promise<LoadedPayment> => {
  let after = payment;
  for (const operation of unconfirmedOperations(payment.state)) {
    if (!goOn()) break;
    after = await confirmOne(deps, after, operation);
  }
  return after;
};
