/** One payment's events for an auditor: from the event store, unreadable ones included. */
import { decode } from '../shared/event-store/codec.ts';
import { asPaymentEvent } from '../shared/event-store/fold-stream.ts';
import type { LogEvent, RecordedEvent, StoredForm } from '../shared/event-store/port.ts';
import type { Principal } from '../shared/http/auth/tokens.ts';
import { paymentOf, streamOf } from '../shared/payment/payment-events.ts';
import { type PaymentReadModel, project } from '../shared/payment/response.ts';
import type { AuditEvent, AuditUnreadableEvent } from './contract.ts';
import { type AuditDeps, onlyOf } from './deps.ts';

/** The whole stream of a payment; `forms[n]` is the stored form of `events[n]`. */
export type History = { merchantId: string; events: LogEvent[]; forms: StoredForm[] };

/**
 * The history of a payment that the actor may see; undefined for another merchant's payment as for one
 * that does not exist. Where the first event cannot be read, the merchant comes from the read model.
 * Throws StoreUnavailable and ReadModelsUnavailable.
 */
export const historyOf = async (
  deps: AuditDeps,
  principal: Principal,
  paymentId: string,
): Promise<History | undefined> => {
  const forms = await deps.store.stored.readStream(streamOf(paymentId));
  const events = forms.map((form) => decode(form));
  const [first] = events;
  if (first === undefined) return undefined;
  const merchantId =
    (await deps.merchants.of(first)) ?? (await deps.readModels.getAny(paymentId))?.merchantId ?? '';
  const only = onlyOf(principal);
  // seeded bug: history-of-merchant
  return only === undefined || merchantId === only ? { merchantId, events, forms } : undefined;
};

type Amounts = NonNullable<AuditEvent['amounts']>;

const amountsOf = ({ event }: RecordedEvent): Amounts | undefined => {
  if (!('amount' in event.data)) return undefined;
  const { amount, currency } = event.data;
  const releasedAmount = 'releasedAmount' in event.data ? event.data.releasedAmount : undefined;
  return { amount, currency, ...(releasedAmount === undefined ? {} : { releasedAmount }) };
};

const paymentIdIn = (stream: string): { paymentId?: string } => {
  const paymentId = paymentOf(stream);
  return paymentId === undefined ? {} : { paymentId };
};

/** An event as a response shows it; `readModel` is the payment after it, where the stream was folded. */
export const auditEvent = (
  recorded: LogEvent,
  readModel?: PaymentReadModel,
): AuditEvent | AuditUnreadableEvent => {
  const { position, stream, revision } = recorded;
  const place = { position, stream, revision, ...paymentIdIn(stream) };
  if ('unreadable' in recorded) return { ...place, unreadable: recorded.unreadable };
  const { id, time, event, context, schemaVersion, hash, previousHash } = recorded;
  const amounts = amountsOf(recorded);
  return {
    ...place,
    type: event.type,
    time,
    actor: context.actor,
    requestId: context.requestId,
    correlationId: context.correlationId,
    causationId: context.causationId,
    id,
    schemaVersion,
    ...(amounts === undefined ? {} : { amounts: { ...amounts, ...amountsIn(readModel) } }),
    ...(readModel === undefined ? {} : { status: readModel.response.status }),
    hash,
    previousHash,
    data: event.data,
  };
};

const amountsIn = (readModel: PaymentReadModel | undefined): Partial<Amounts> => {
  if (readModel === undefined) return {};
  const { authorizedAmount, capturedAmount, refundedAmount, refundableAmount } = readModel.response;
  return { authorizedAmount, capturedAmount, refundedAmount, refundableAmount };
};

/** The read model after one more event; undefined from the first event on that cannot be applied. */
const next = (
  readModel: PaymentReadModel | undefined,
  event: LogEvent,
): PaymentReadModel | undefined => {
  if ('unreadable' in event) return undefined;
  try {
    return project(readModel, asPaymentEvent(event));
  } catch {
    return undefined;
  }
};

/** Every event with the payment's amounts after it, oldest first. */
export const timelineOf = (events: readonly LogEvent[]): (AuditEvent | AuditUnreadableEvent)[] => {
  let readModel: PaymentReadModel | undefined;
  return events.map((event) => {
    readModel = next(readModel, event);
    return auditEvent(event, readModel);
  });
};
