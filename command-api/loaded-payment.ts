import { StreamNotWhole } from '../shared/event-store/errors.ts';
import type { RecordedPaymentEvent } from '../shared/event-store/fold-stream.ts';
import type { Operation, PaymentState } from '../shared/payment/payment-state.ts';
import { evolve } from '../shared/payment/state.ts';

export type LoadedPayment = {
  events: readonly RecordedPaymentEvent[];
  state: PaymentState;
};

export const after = (
  payment: LoadedPayment | undefined,
  appended: readonly RecordedPaymentEvent[],
): LoadedPayment => {
  let state = payment?.state;
  for (const recorded of appended) state = evolve(state, recorded);
  if (state === undefined) throw new Error('a payment without events');
  return { events: [...(payment?.events ?? []), ...appended], state };
};

const operationIn = (state: PaymentState | undefined, operationId: string): Operation | undefined =>
  state?.operations.find((one) => one.operationId === operationId);

export const operationOf = (
  { state }: Pick<LoadedPayment, 'state'>,
  operationId: string,
): Operation => {
  const found = operationIn(state, operationId);
  if (found === undefined)
    throw new Error(`payment ${state.paymentId} has no operation ${operationId}`);
  return found;
};

export const knows = (payment: LoadedPayment | undefined, operationId: string): boolean =>
  operationIn(payment?.state, operationId) !== undefined;

/**
 * True where one of these appends stored the intent. Under a key the operation id is derived (gaps
 * §17), so another process may have begun the very same operation, with a call of its own.
 */
export const isIntentOf = (
  { events, state }: LoadedPayment,
  operationId: string,
  tried: ReadonlySet<string>,
): boolean => {
  const operation = operationIn(state, operationId);
  return operation !== undefined && tried.has(events[operation.requestedAt]?.id ?? '');
};

export const notInLog = (paymentId: string): StreamNotWhole =>
  new StreamNotWhole(`payment ${paymentId}: it was seen before, and the log does not have it`);
