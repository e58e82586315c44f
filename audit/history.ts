/** One payment's events, verified as they are read; unreadable and broken ones are included. */
import type { FastifyReply } from 'fastify';
import { breakAt, formsLeft, verifyStream } from '../shared/event-store/chain.ts';
import { allReadable, decode, isReadable } from '../shared/event-store/codec.ts';
import { StreamNotWhole } from '../shared/event-store/errors.ts';
import {
  asPaymentEvent,
  foldStream,
  type RecordedPaymentEvent,
} from '../shared/event-store/fold-stream.ts';
import type { LogEvent, RecordedEvent, StoredForm } from '../shared/event-store/port.ts';
import { reject } from '../shared/http/errors.ts';
import { onlyOf, type Principal } from '../shared/http/request.ts';
import { isPaymentEvent, paymentOf, streamOf } from '../shared/payment/events.ts';
import type { PersonalGroup } from '../shared/payment/fields.ts';
import { project } from '../shared/payment/fold.ts';
import { type OpenedText, putBack } from '../shared/payment/response.ts';
import type { OpenText, PaymentReadModel } from '../shared/payment/state.ts';
import { isIntent } from '../shared/payment/transitions.ts';
import { onError, orElse, reasonOf } from '../shared/runtime/error-text.ts';
import { mapInSlices } from '../shared/runtime/scheduling.ts';
import type { Access } from './access-recorder.ts';
import { unreadableReason } from './breaks.ts';
import type { AuditBreak, AuditEvent, AuditUnreadableEvent } from './contract.ts';
import type { AuditDeps } from './deps.ts';
import { whyOf } from './event-words.ts';
import { sumsOver } from './walk-log.ts';

type HistoryDeps = Pick<AuditDeps, 'store' | 'readModels' | 'merchants'>;

/** `forms[n]` is the stored form of `events[n]`. `broken`: the first event that does not verify. */
export type History = {
  merchantId: string;
  events: LogEvent[];
  forms: StoredForm[];
  broken: AuditBreak | undefined;
};

/** The first event that does not verify: by its hashes, its amounts, or as it cannot be read. */
export const streamBreak = (
  forms: readonly StoredForm[],
  events: readonly LogEvent[],
  isPart = false,
): AuditBreak | undefined => {
  const broken = verifyStream(forms, isPart);
  if (broken !== undefined || events[0]?.revision !== 0) return broken;
  for (const reasonFor of [sumsOver(), followCheck()]) {
    for (const event of events) {
      const reason = reasonFor(event);
      if (reason !== undefined) return breakAt(event, reason);
    }
  }
  return undefined;
};

const followCheck = () => {
  let readModel: PaymentReadModel | undefined;
  return (event: LogEvent): string | undefined => {
    if ('unreadable' in event) return unreadableReason(event.unreadable);
    try {
      readModel = project(readModel, asPaymentEvent(event));
      return undefined;
    } catch (error) {
      return unreadableReason(reasonOf(error));
    }
  };
};

const ONLY_IN_READ_MODELS = 'the read models have it, the log does not';

/** A damaged index hides the last events of a stream, which then verifies. */
const endBreak = (forms: readonly StoredForm[], known = -1): AuditBreak | undefined => {
  const { stream = '', revision = 0 } = forms.at(-1) ?? {};
  const next = { position: '', stream, revision: revision + 1 };
  return known > revision ? breakAt(next, ONLY_IN_READ_MODELS) : undefined;
};

/** Why the server says that it lacks a stream; undefined where it does not say so. */
const removalOf = ({ store }: HistoryDeps, stream: string): Promise<string | undefined> =>
  store.lastRevision(stream).then(
    () => undefined,
    onError(StreamNotWhole, ({ why }) => why),
  );

/** The history of a payment that the log lacks; undefined for none. */
const removedHistory = async (deps: HistoryDeps, paymentId: string, merchantId?: string) => {
  const stream = streamOf(paymentId);
  const removal = await removalOf(deps, stream);
  if (removal === undefined && merchantId === undefined) return undefined;
  const reason = removal ?? ONLY_IN_READ_MODELS;
  const broken = { position: '', stream, revision: 0, reason };
  return { merchantId: merchantId ?? '', events: [], forms: [], broken };
};

/**
 * Records the access first. Rejects another merchant's payment as none. `broken` also says why the log lacks
 * a payment that the read models know. Throws StoreUnavailable and ReadModelsUnavailable.
 */
export const findHistory = async (
  deps: HistoryDeps & Pick<AuditDeps, 'record'>,
  { principal, paymentId }: { principal: Principal; paymentId: string },
  reply: FastifyReply,
  access: Omit<Access, 'paymentId'>,
): Promise<(History & { paymentId: string }) | undefined> => {
  await deps.record(reply.request, { ...access, paymentId });
  const only = onlyOf(principal);
  // Before the stream, so that it is ahead of no whole one. A whole one is shown without it too.
  const look = deps.readModels.getAny(paymentId);
  const document = await look.catch(() => undefined);
  const forms = await formsLeft(deps.store.stored, streamOf(paymentId));
  const [first] = forms;
  // Whose it is they alone say of a stream that does not verify: it may name any merchant.
  const known =
    only === undefined ? async () => document?.merchantId : async () => (await look)?.merchantId;
  let history: History | undefined;
  if (first === undefined) {
    history = await removedHistory(deps, paymentId, await known());
  } else {
    const events = await mapInSlices(forms, decode);
    const broken = streamBreak(forms, events) ?? endBreak(forms, document?.revision);
    const merchantId =
      (broken && (await known())) ?? (await deps.merchants.ofForm(first)) ?? (await known()) ?? '';
    history = { merchantId, events, forms, broken };
  }
  if (history === undefined || (only !== undefined && history.merchantId !== only)) {
    reject(reply, 'PAYMENT_NOT_FOUND');
    return undefined;
  }
  // Logged only from here on: before, the text might be no id but, say, a card number.
  reply.request.paymentId = paymentId;
  return { ...history, paymentId };
};

const amountsOf = ({ event: { data } }: RecordedEvent, readModel: PaymentReadModel | undefined) => {
  if (!('amount' in data)) return undefined;
  const { amount, currency } = data;
  const releasedAmount = 'releasedAmount' in data ? data.releasedAmount : undefined;
  const own = { amount, currency, ...(releasedAmount !== undefined && { releasedAmount }) };
  if (readModel === undefined) return own;
  const { authorizedAmount, capturedAmount, refundedAmount, refundableAmount } = readModel;
  return { ...own, authorizedAmount, capturedAmount, refundedAmount, refundableAmount };
};

export type Texts = (event: RecordedEvent['event']) => OpenedText<never> | { text: unknown };

/** Without a key: what version 1 stored in the clear. */
export const unopened: Texts = ({ data }) => {
  const stored = 'personal' in data ? data.personal : 'identity' in data && Object(data).reason;
  return stored?.clear === undefined ? { sealed: true } : { text: stored.clear };
};

/** Opened where `isPersonal`; that they are erased is shown to all. */
export const shownTexts = async (
  openText: OpenText,
  { events, paymentId }: Pick<History, 'events'> & { paymentId: string },
  isPersonal: boolean,
): Promise<Texts> => {
  const all = events.filter(isReadable);
  const erased = all.find(({ event }) => event.type === 'PaymentPersonalDataErased');
  const kept: OpenedText<never> = erased
    ? { erased: true, erasedAt: erased.time }
    : { sealed: true };
  const opened = new Map<RecordedEvent['event'], ReturnType<Texts>>();
  for (const { event } of isPersonal && !erased ? all : []) {
    if (!isPaymentEvent(event) || !isIntent(event)) continue;
    const { type, data } = event;
    const [field, stored] =
      type === 'PaymentCreated' ? ['personal', data.personal] : ['reason', data.reason];
    if (stored) opened.set(event, await openText<unknown>(stored, { paymentId, type, field }));
  }
  return (event) => {
    const without = unopened(event);
    return 'text' in without ? without : (opened.get(event) ?? kept);
  };
};

const inOrder = <T extends object>(object: T): T =>
  Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1))) as T;

/** The address of a webhook endpoint may hold a password of its merchant among its parameters. */
const shownData = (event: RecordedEvent['event'], texts: Texts): AuditEvent['data'] => {
  const { type, data } = event;
  if (type === 'PaymentCreated') {
    const opened = texts(event) as OpenedText<PersonalGroup>;
    if (!('text' in opened)) return { ...data, personal: opened };
    const { personal: _sealed, ...open } = data;
    const { card, details } = putBack(data, opened);
    return { ...open, card, details: inOrder(details) };
  }
  if (isPaymentEvent(event) && isIntent(event) && 'reason' in data) {
    const opened = texts(event);
    return { ...data, reason: 'text' in opened ? opened.text : opened };
  }
  if (!('url' in data) || data.url === undefined) return data;
  const url = data.url.replace(/(?<=[?&][^=&#]*=)[^&#]*/g, '***');
  return { ...data, url };
};

/** `readModel` is the payment after the event, where the stream was folded. */
export const auditEvent = (
  recorded: LogEvent,
  readModel?: PaymentReadModel,
  texts = unopened,
): AuditEvent | AuditUnreadableEvent => {
  const { position, stream, revision } = recorded;
  const paymentId = paymentOf(stream);
  const place = { position, stream, revision, ...(paymentId !== undefined && { paymentId }) };
  if ('unreadable' in recorded) return { ...place, unreadable: recorded.unreadable };
  const { id, time, event, context, schemaVersion, hash, previousHash } = recorded;
  const amounts = amountsOf(recorded, readModel);
  const data = shownData(event, texts);
  const why = whyOf({ type: event.type, data });
  const { actor, requestId, correlationId, causationId } = context;
  return {
    ...place,
    type: event.type,
    time,
    actor,
    requestId,
    correlationId,
    causationId,
    id,
    schemaVersion,
    ...(amounts === undefined ? {} : { amounts }),
    ...(readModel === undefined ? {} : { status: readModel.status }),
    hash,
    previousHash,
    data,
    ...(why === '' ? {} : { why }),
  };
};

const next = (readModel: PaymentReadModel | undefined, event: LogEvent) =>
  'unreadable' in event
    ? undefined
    : orElse(undefined, () => project(readModel, asPaymentEvent(event)));

export const timelineOf = (
  events: readonly LogEvent[],
  texts: Texts,
  broken?: AuditBreak,
): (AuditEvent | AuditUnreadableEvent)[] => {
  let readModel: PaymentReadModel | undefined;
  const brokenAt = provenCount(events, broken);
  return events.map((event, at) => {
    readModel = at < brokenAt ? next(readModel, event) : undefined;
    const shown = auditEvent(event, readModel, texts);
    return at === brokenAt && broken !== undefined ? { ...shown, broken: broken.reason } : shown;
  });
};

const provenCount = (events: readonly LogEvent[], broken: AuditBreak | undefined): number => {
  const at =
    broken === undefined ? -1 : events.findIndex((one) => one.position === broken.position);
  return at === -1 ? events.length : at;
};

/** `fold` over the proven events. Throws UnreadableStream, a 503 (gaps §9), where it cannot. */
export const foldProven = <T>(
  { events, broken }: Pick<History, 'events' | 'broken'>,
  fold: (events: readonly RecordedPaymentEvent[]) => T,
): T => foldStream(allReadable(events.slice(0, provenCount(events, broken))), fold);
