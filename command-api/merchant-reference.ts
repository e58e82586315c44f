/**
 * A merchantReference that names one payment (gaps §8, `MERCHANT_REFERENCE=unique`), over races and processes.
 * Each reference has a stream, named by a keyed hash; a claimant appends its payment at the exact revision it
 * has read. A create claims, is appended, reads the claims again, and goes to the provider only while the last
 * one is its own. Two never do: the later claimant looks at the earlier one's payment after its own claim is
 * durable. If that payment exists by then, the later create yields; if it is appended afterwards, its create
 * finds another's claim last. So every payment that ever claimed is looked at.
 */
import { expectedAfter, timeAfter } from '../shared/event-store/codec.ts';
import { AppendOutcomeUnknown, RevisionConflict } from '../shared/event-store/errors.ts';
import type { RecordedEvent } from '../shared/event-store/port.ts';
import type { Identities } from '../shared/http/idempotency.ts';
import { contextOf, type Sender } from '../shared/http/request.ts';
import { type Budget, BudgetSpent } from '../shared/http/request-budget.ts';
import type { CreateCommand } from '../shared/payment/commands.ts';
import { type ClaimEvent, isClaimEvent, referenceStreamOf } from '../shared/payment/events.ts';
import { createOf, isOfSameRequest } from '../shared/payment/state.ts';
import { newEventId } from '../shared/runtime/ids.ts';
import type { CommandDeps } from './deps.ts';
import { pauses } from './in-flight.ts';
import type { LoadedPayment } from './payment-log.ts';
import {
  actionRequired,
  approved,
  type CommandResponse,
  rejection,
  responseTo,
  unknownOutcome,
} from './responses.ts';

/** From a claim to its PaymentCreated; after that the claim no longer counts. */
const CLAIM_MS_MAX = 2_000;

const claimantOf = ({ event, stream }: RecordedEvent): string => {
  if (!isClaimEvent(event)) throw new Error(`${stream} holds ${event.type}, which is no claim`);
  return event.data.paymentId;
};

const readClaims = async (
  { store, identities, nowMs }: CommandDeps,
  merchantId: string,
  reference: string,
) => {
  const streamBy = (by: Identities): string =>
    referenceStreamOf(by.referenceHashOf(merchantId, reference));
  const { previous } = identities;
  const stream = streamBy(identities);
  const older = previous === undefined ? [] : await store.readStream(streamBy(previous));
  const events = await store.readStream(stream);
  const all = [...older, ...events];
  const lastAgeMs = nowMs() - Date.parse(all.at(-1)?.time ?? '');
  // By the event's id: the same payment can be claimed for by its own repeat.
  return { stream, events, paymentIds: all.map(claimantOf), lastId: all.at(-1)?.id, lastAgeMs };
};
type Claims = Awaited<ReturnType<typeof readClaims>>;

const claim = async (
  { store, nowMs }: CommandDeps,
  { stream, events }: Claims,
  data: ClaimEvent['data'],
  sender: Sender,
): Promise<string> => {
  const last = events.at(-1);
  const time = timeAfter(last, nowMs());
  const event: ClaimEvent = { type: 'MerchantReferenceClaimed', data };
  const id = newEventId();
  const context = contextOf(sender);
  try {
    await store.append(stream, expectedAfter(last), [{ id, time, event, context }]);
  } catch (error) {
    if (!(error instanceof RevisionConflict || error instanceof AppendOutcomeUnknown)) throw error;
  }
  return id;
};

/** Whether the claim still stands, or the response by the payment that has the reference. Throws BudgetSpent. */
export const claimReference = async (
  deps: CommandDeps,
  { sender, budget }: { sender: Sender; budget: Budget },
  create: CreateCommand,
  reference: string,
): Promise<{ stands: () => Promise<boolean> } | { response: CommandResponse }> => {
  const { paymentId, merchantId, operationId, amount, currency } = create;
  if (amount === 'too large')
    throw new Error(`payment ${paymentId} claims a reference with an amount that the rules refuse`);
  const pause = pauses(budget);
  const startedMs = performance.now();
  const read = () => readClaims(deps, merchantId, reference);
  let claimId: string | undefined;
  for (;;) {
    if (budget.leftMs() === 0) throw new BudgetSpent();
    const claims = await read();
    const judged = await judge(deps, claims, create, budget);
    if (typeof judged === 'object') return { response: judged };
    const waitedMs = Math.max(claims.lastAgeMs, performance.now() - startedMs);
    if (judged === 'just claimed' && waitedMs < CLAIM_MS_MAX) {
      await pause();
      continue;
    }
    // Every earlier claimant was looked at after our own claim was durable: our claim stands.
    if (claimId !== undefined && claims.lastId === claimId)
      return { stands: async () => (await read()).lastId === claimId };
    const data = { paymentId, merchantId, operationId, amount, currency };
    claimId = await claim(deps, claims, data, sender);
  }
};

const judge = async (
  deps: CommandDeps,
  claims: Claims,
  create: CreateCommand,
  budget: Budget,
): Promise<CommandResponse | 'just claimed' | undefined> => {
  const last = claims.paymentIds.at(-1);
  const others = new Set(claims.paymentIds.filter((id) => id !== create.paymentId));
  for (const id of others) {
    const payment = await ended(deps, id, budget);
    if (payment?.state.status === 'FAILED') continue;
    if (payment !== undefined) return responseOf(deps, payment, id, create);
    if (id === last) return 'just claimed';
  }
  return undefined;
};

/** The payment once its create has ended, as far as that can be known. */
const ended = async (
  { paymentLog, unresolved, inFlight }: CommandDeps,
  id: string,
  budget: Budget,
): Promise<LoadedPayment | undefined> => {
  const known = paymentLog.peek(id);
  if (known?.state.status === 'FAILED') return known;
  const payment = await paymentLog.load(id, 'store');
  if (payment?.state.status !== 'PENDING') return payment;
  if (inFlight.wasJustLookedUp(createOf(payment.state))) return payment;
  // A PENDING payment's create no longer waits for a reference: the two never wait for each other.
  return unresolved.resolveInTurn(id, budget);
};

const responseOf = (
  deps: CommandDeps,
  payment: LoadedPayment,
  id: string,
  create: CreateCommand,
): CommandResponse => {
  const { state, events } = payment;
  const first = createOf(state);
  if (!isOfSameRequest(first, create)) {
    return rejection('BUSINESS_RULE_VIOLATION', [
      `merchantReference names another payment already, ${id}`,
    ]);
  }
  if (first.ended?.revision === state.revision) return responseTo(payment, first);
  const waiting = addressAgain(deps, payment);
  if (waiting !== undefined) return waiting;
  const seen = { paymentId: id, revision: events.length - 1 };
  return { ...(state.status === 'PENDING' ? unknownOutcome(id) : approved(state)), seen };
};

/** While the shopper is waited for, and the provider gave the address at the last question (gaps §21). */
export const addressAgain = (
  { inFlight }: Pick<CommandDeps, 'inFlight'>,
  payment: LoadedPayment,
): CommandResponse | undefined => {
  const create = createOf(payment.state);
  const url = inFlight.isWaiting(create) ? inFlight.addressOf(create) : undefined;
  return url === undefined ? undefined : actionRequired(payment, create, url);
};
