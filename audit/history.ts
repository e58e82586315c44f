/** One payment's events as an auditor gets them: from the event store, what cannot be read too. */
import { decode } from '../shared/event-store/codec.ts';
import type {
  EventStore,
  RecordedEvent,
  StoredForm,
  UnreadableEvent,
} from '../shared/event-store/port.ts';
import type { Caller } from '../shared/http/auth/authenticate.ts';
import { paymentOf, streamOf } from '../shared/payment/payment-events.ts';
import { type PaymentView, project } from '../shared/payment/response.ts';
import type { AuditEvent, AuditUnreadableEvent } from './contract.ts';
import { type AuditRoom, onlyOf } from './deps.ts';

type AnyEvent = RecordedEvent | UnreadableEvent;

export type History = { merchantId: string; events: AnyEvent[]; forms: StoredForm[] | undefined };

const eventsOf = async (
  store: EventStore,
  stream: string,
): Promise<Pick<History, 'events' | 'forms'>> => {
  const forms = await store.stored?.readStream(stream);
  return forms === undefined
    ? { events: await store.readStream(stream), forms }
    : { events: forms.map((form) => decode(form)), forms };
};

/**
 * The history of a payment that the caller may see; undefined for another merchant's as for one
 * that does not exist. Where the first event cannot be read, the read model says whose it is.
 */
export const historyOf = async (
  room: AuditRoom,
  caller: Caller,
  paymentId: string,
): Promise<History | undefined> => {
  const { events, forms } = await eventsOf(room.store, streamOf(paymentId));
  const [first] = events;
  if (first === undefined) return undefined;
  const owner =
    (await room.owners.of(first)) ?? (await room.views.getAny(paymentId))?.merchantId ?? '';
  const only = onlyOf(caller);
  return only === undefined || owner === only ? { merchantId: owner, events, forms } : undefined;
};

type Amounts = NonNullable<AuditEvent['amounts']>;

const amountsOf = ({ event }: RecordedEvent): Amounts | undefined => {
  const data: { amount?: number; currency?: string; releasedAmount?: number | undefined } =
    event.data;
  const { amount, currency, releasedAmount } = data;
  if (amount === undefined || currency === undefined) return undefined;
  return { amount, currency, ...(releasedAmount === undefined ? {} : { releasedAmount }) };
};

const paymentIdIn = (stream: string): { paymentId?: string } => {
  const paymentId = paymentOf(stream);
  return paymentId === undefined ? {} : { paymentId };
};

/** An event as it is shown; `view` is the payment after it, where its stream has been folded. */
export const auditEvent = (
  recorded: AnyEvent,
  view?: PaymentView,
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
    ...(amounts === undefined ? {} : { amounts: { ...amounts, ...sumsOf(view) } }),
    ...(view === undefined ? {} : { status: view.response.status }),
    hash,
    previousHash,
    data: event.data,
  };
};

const sumsOf = (view: PaymentView | undefined): Partial<Amounts> => {
  if (view === undefined) return {};
  const { authorizedAmount, capturedAmount, refundedAmount, refundableAmount } = view.response;
  return { authorizedAmount, capturedAmount, refundedAmount, refundableAmount };
};

/** The view after one more event, undefined from the first on that does not fit. */
const next = (view: PaymentView | undefined, event: AnyEvent): PaymentView | undefined => {
  if ('unreadable' in event) return undefined;
  try {
    return project(view, event);
  } catch {
    return undefined;
  }
};

/** Every event with the sums after it, oldest first. */
export const timelineOf = (events: readonly AnyEvent[]): (AuditEvent | AuditUnreadableEvent)[] => {
  let view: PaymentView | undefined;
  return events.map((event) => {
    view = next(view, event);
    return auditEvent(event, view);
  });
};
