/**
 * What an earlier request with the same key has begun, for a repeat whose budget is spent before its
 * turn (gaps §8). It is known from what this process has in memory: nothing is read or waited for.
 */
import {
  createOf,
  isFree,
  isUnderKeyOf,
  unresolvedOperations,
} from '../shared/payment/payment-state.ts';
import { type Change, recognisedBy } from './change-payment.ts';
import type { CommandDeps } from './deps.ts';
import { createIdsUnder, type Identities } from './idempotency.ts';
import type { EarlierOperation } from './responses.ts';
import type { Sender } from './sender.ts';

type Deps = Pick<CommandDeps, 'identities' | 'inFlight' | 'paymentLog'>;

/** The create of the key that has no outcome yet; undefined where there is none, and without a key. */
export const earlierCreate = (
  deps: Deps,
  { merchantId }: Sender,
  key: string | undefined,
): EarlierOperation | undefined => {
  if (key === undefined) return undefined;
  const { previous } = deps.identities;
  return (
    createUnder(deps, deps.identities, merchantId, key) ??
    (previous && createUnder(deps, previous, merchantId, key))
  );
};

const createUnder = (
  { inFlight, paymentLog }: Deps,
  by: Identities,
  merchantId: string,
  key: string,
): EarlierOperation | undefined => {
  for (let attempt = 1; ; attempt += 1) {
    const { paymentId, operationId } = createIdsUnder(by, merchantId, key, attempt);
    // Also before its intent is stored.
    if (inFlight.isLive(operationId)) return { paymentId, mayRun: true };
    const payment = paymentLog.peek(paymentId);
    if (payment === undefined) return undefined;
    const create = createOf(payment.state);
    if (isFree(create)) continue;
    if (create.ended !== undefined) return undefined;
    return { paymentId, mayRun: inFlight.mayRun(payment, create) };
  }
};

/** The operation of the change's key that has no outcome yet; undefined where there is none. */
export const earlierChange = (
  deps: Deps,
  sender: Sender,
  change: Change,
  key: string | undefined,
): EarlierOperation | undefined => {
  const { paymentId } = change;
  const payment = deps.paymentLog.peek(paymentId);
  if (payment === undefined) return undefined;
  const request = recognisedBy(deps, sender, change, key);
  const operation = unresolvedOperations(payment.state).find((o) => isUnderKeyOf(o, request));
  return operation && { paymentId, mayRun: deps.inFlight.mayRun(payment, operation) };
};
