/**
 * The payment as a response shows it: a fold of `project` over the stream gives the PaymentResponse
 * of the interface. The command side, the projector and the query side's fold all use this one
 * function, so the bodies of one revision are the same to the byte (gaps §9).
 */
import { afterLater } from './later-response.ts';
import type { EventData, PlacedEvent } from './payment-events.ts';
import {
  attempt,
  type Failure,
  failureOf,
  isIdOf,
  type PaymentFailureResponse,
  type PaymentReadModel,
  type PaymentResponse,
  refundableAmount,
  type Transaction,
  type TransactionType,
  type UnresolvedIntents,
} from './payment-response.ts';
import {
  checkNote,
  checkOperation,
  confirmationAfter,
  type FollowingEvent,
  inStatusFor,
  isIntent,
  isLater,
  isNote,
  type NoteEvent,
  statusAfterRefund,
  TRANSITIONS,
} from './transitions.ts';

/** The version of the stored read models: raise it with any change of `project` or of PaymentReadModel. */
export const READ_MODEL_VERSION = 3;

const created = (
  data: EventData<'PaymentCreated'>,
  { revision, time }: Omit<PlacedEvent, 'event'>,
): PaymentReadModel => {
  const {
    merchantReference,
    descriptor,
    goodsType,
    productItems,
    consumer,
    billing,
    shipping,
    source,
  } = data.details;
  const { last4: _, ...cardWithoutLast4 } = data.card;
  return {
    merchantId: data.merchantId,
    revision,
    unresolved: [{ operationId: data.operationId, amount: data.amount, since: time }],
    response: {
      paymentId: data.paymentId,
      ...(merchantReference === undefined ? {} : { merchantReference }),
      amount: data.amount,
      authorizedAmount: 0,
      capturedAmount: 0,
      refundedAmount: 0,
      refundableAmount: 0,
      currency: data.currency,
      status: TRANSITIONS.PaymentCreated.to,
      paymentMethod: { type: 'CARD', card: data.card, encryptedCard: cardWithoutLast4 },
      captureNow: data.captureNow,
      ...(descriptor === undefined ? {} : { descriptor }),
      ...(goodsType === undefined ? {} : { goodsType }),
      ...(productItems === undefined ? {} : { productItems }),
      ...(consumer === undefined ? {} : { consumer }),
      ...(billing === undefined ? {} : { billing }),
      ...(shipping === undefined ? {} : { shipping }),
      createdAt: time,
      updatedAt: time,
      transactions: [],
      ...(source === undefined ? {} : { source }),
    },
  };
};

/** The fields of the response that an event after the first one changes. */
const changes = (
  response: PaymentResponse,
  event: FollowingEvent,
  time: string,
): Partial<PaymentResponse> => {
  const adding = (type: TransactionType, failure?: Failure): { transactions: Transaction[] } => ({
    transactions: [...response.transactions, attempt(type, event.data, time, failure)],
  });
  switch (event.type) {
    case 'PaymentAuthorized':
      return {
        status: TRANSITIONS[event.type].to,
        authorizedAmount: event.data.amount,
        ...(response.captureNow ? {} : adding('AUTH')),
      };
    case 'PaymentCaptured':
      return {
        status: TRANSITIONS[event.type].to,
        capturedAmount: event.data.amount,
        ...adding(response.captureNow ? 'SALE' : 'CAPTURE'),
      };
    case 'PaymentVoided':
      return { status: TRANSITIONS[event.type].to, ...adding('VOID') };
    case 'PaymentRefunded': {
      const refundedAmount = response.refundedAmount + event.data.amount;
      const status = statusAfterRefund(refundedAmount, response.capturedAmount);
      return { status, refundedAmount, ...adding('REFUND') };
    }
    case 'PaymentFailed': {
      const failed = adding(response.captureNow ? 'SALE' : 'AUTH', failureOf(event.data));
      return { status: TRANSITIONS[event.type].to, ...failed };
    }
    case 'PaymentCaptureDeclined':
      return adding('CAPTURE', failureOf(event.data));
    case 'PaymentVoidDeclined':
      return adding('VOID', failureOf(event.data));
    case 'PaymentRefundDeclined':
      return adding('REFUND', failureOf(event.data));
    case 'PaymentCaptureRequested':
    case 'PaymentVoidRequested':
    case 'PaymentRefundRequested':
      return {};
  }
};

const unresolvedAfter = (
  unresolved: UnresolvedIntents,
  event: FollowingEvent,
  since: string,
): UnresolvedIntents => {
  const { operationId, amount } = event.data;
  if (isIntent(event)) return [...unresolved, { operationId, amount, since }];
  const confirmation = confirmationAfter(event);
  const left = unresolved.filter((o) => o.operationId !== operationId || o.confirmation);
  // The second outcome of a sale finds what the first one has left.
  if (confirmation === undefined || left.some((o) => o.operationId === operationId)) return left;
  return [...left, { operationId, amount, since, confirmation }];
};

/** The read model after a note, which changes nothing that a merchant sees. Throws as checkNote does. */
const afterNote = (
  readModel: PaymentReadModel,
  note: NoteEvent,
  since: string,
): PaymentReadModel => {
  const { operationId, amount } = note.data;
  const known = readModel.unresolved.find((o) => o.operationId === operationId);
  const isUnresolved = known !== undefined && known.confirmation === undefined;
  const hasFailed = readModel.response.transactions.some(
    ({ id, result }) => result === 'FAILED' && isIdOf(id, operationId),
  );
  checkNote(note, { isUnresolved, confirmation: known?.confirmation, hasFailed });
  const revision = readModel.revision + 1;
  if (note.type === 'PaymentProviderOpened' || note.type === 'PaymentResolutionRequested')
    return { ...readModel, revision };
  const { unresolved } = readModel;
  if (note.type === 'PaymentOutcomeConfirmed')
    return { ...readModel, revision, unresolved: unresolved.filter((o) => o !== known) };
  const listed = known === undefined ? [...unresolved, { operationId, amount, since }] : unresolved;
  const confirmation = 'CONTRADICTED' as const;
  return {
    ...readModel,
    revision,
    unresolved: listed.map((o) => (o.operationId === operationId ? { ...o, confirmation } : o)),
  };
};

/** Throws Error where the event cannot follow, as the rules' fold does (transitions.ts). */
const checkFollows = ({ response, unresolved }: PaymentReadModel, event: FollowingEvent): void => {
  inStatusFor(event.type, response);
  const known = unresolved.find((o) => o.operationId === event.data.operationId);
  const isUnconfirmed = known?.confirmation !== undefined;
  const isUnresolved = known !== undefined && !isUnconfirmed;
  const { captureNow } = response;
  checkOperation(event, { isUnresolved, isUnconfirmed, captureNow });
};

/**
 * Applies one event. `readModel` is undefined for the first event of a stream, which must be a
 * PaymentCreated. Throws Error where the event cannot follow the read model: its revision is not the
 * next one, the stream does not begin with PaymentCreated, or the table of transitions excludes it.
 */
export const project = (
  readModel: PaymentReadModel | undefined,
  { revision, time, event }: PlacedEvent,
): PaymentReadModel => {
  const next = readModel === undefined ? 0 : readModel.revision + 1;
  if (revision !== next) throw new Error(`revision ${revision} where ${next} follows`);
  if (event.type === 'PaymentCreated') {
    if (readModel === undefined) return created(event.data, { revision, time });
    throw new Error('PaymentCreated is not the first event of its stream');
  }
  if (readModel === undefined) throw new Error('the stream has no PaymentCreated');
  if (isNote(event)) return afterNote(readModel, event, time);
  if (isLater(event)) return afterLater(readModel, event, time);
  checkFollows(readModel, event);
  const unresolved = unresolvedAfter(readModel.unresolved, event, time);
  const changed = changes(readModel.response, event, time);
  const response = { ...readModel.response, ...changed, updatedAt: time };
  response.refundableAmount = refundableAmount(response, unresolved);
  return { merchantId: readModel.merchantId, revision, unresolved, response };
};

/** The read model after a whole stream; undefined for an empty one. Throws as `project` does. */
export const foldReadModel = (events: Iterable<PlacedEvent>): PaymentReadModel | undefined => {
  let readModel: PaymentReadModel | undefined;
  for (const event of events) readModel = project(readModel, event);
  return readModel;
};

/** The JSON text of the response; no other code serializes it. */
export const bodyOf = (readModel: PaymentReadModel): string => JSON.stringify(readModel.response);

/** The body of the 402 for a payment whose create failed; undefined for any other payment. */
export const failureBodyOf = (readModel: PaymentReadModel): PaymentFailureResponse | undefined => {
  const { paymentId, merchantReference, amount, currency, status, transactions } =
    readModel.response;
  const failure = transactions[0]?.failure;
  if (status !== 'FAILED' || failure === undefined) return undefined;
  return {
    paymentId,
    ...(merchantReference === undefined ? {} : { merchantReference }),
    amount,
    currency,
    status,
    failure,
  };
};
