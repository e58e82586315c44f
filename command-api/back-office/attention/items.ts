/**
 * Items of attention (gaps §25), read at each request from their sources: this process's unresolved operations,
 * the read models, the event store, the projector's and checks' documents. Only acknowledgements are kept.
 */
import { hash } from 'node:crypto';
import { type CheckRecord, parseCheckRecord } from '../../../audit/check-record.ts';
import type { Opener } from '../../../personal-data/opener.ts';
import type { Misconfigured } from '../../../providers/resilience.ts';
import { logIdOf } from '../../../shared/event-store/chain.ts';
import {
  type ControlReads,
  NO_EVENTS,
  readControl,
} from '../../../shared/event-store/control-stream.ts';
import {
  asUnreadable,
  ControlNotWhole,
  StoreUnavailable,
  StreamNotWhole,
  UnreadableStream,
} from '../../../shared/event-store/errors.ts';
import type { EventStore } from '../../../shared/event-store/port.ts';
import {
  ATTENTION_STREAM,
  PROVIDER_AHEAD_STREAM,
  SECRET_CHANGES_STREAM,
} from '../../../shared/payment/audit-events.ts';
import { APPROVAL_MS_MAX } from '../../../shared/payment/decide.ts';
import { paymentOf, streamOf } from '../../../shared/payment/events.ts';
import { SEALS_STREAM } from '../../../shared/payment/seal-events.ts';
import { WEBHOOK_MERCHANTS_STREAM } from '../../../shared/payment/webhook-events.ts';
import { ReadModelsUnavailable } from '../../../shared/read-models/errors.ts';
import type { KeyDocument } from '../../../shared/read-models/key-document.ts';
import type { ReadModelsReader } from '../../../shared/read-models/port.ts';
import { onError } from '../../../shared/runtime/error-text.ts';
import { crockford } from '../../../shared/runtime/ids.ts';
import { parseCheckpoint } from '../../../topics/checkpoint.ts';
import {
  merchantsWithEndpoints,
  readableEndpoints,
} from '../../../webhooks/endpoints/endpoint-log.ts';
import type { CommandDeps } from '../../deps.ts';
import { listUnresolved } from '../../recovery/unresolved.ts';
import type { BarredLook } from '../../recovery/untold.ts';
import type { ProviderAhead } from '../provider-ahead/provider-ahead.ts';
import type { AttentionItem, AttentionReason } from './contract.ts';

export const UNRESOLVED_AFTER_MS = 15 * 60_000;

const LISTED_MAX = 1_000;
/** The streams of payments that are read to tell an event that cannot be read from one that does not fit. */
const READ_MAX = 100;

type AttentionDeps = {
  commands: CommandDeps;
  store: ControlReads & Pick<EventStore, 'readAll' | 'claimMeta'>;
  readModels: Pick<ReadModelsReader, 'unresolved' | 'parked' | 'getAny'>;
  opener: Pick<Opener, 'missing'>;
  providerAhead: Pick<ProviderAhead, 'now'>;
  rejections: { misconfigured(): Misconfigured[] };
  elsewhereLook: { barred(): BarredLook[] };
  documents: Record<'relay' | 'verification' | 'reconciliation', Pick<KeyDocument, 'load'>>;
  verifyEveryMs: number;
  unresolvedAfterMs: number;
};

type Found = Omit<AttentionItem, 'id' | 'since'> & {
  /** Left out where nothing says it: then it counts from the look that found it first. */
  since?: string;
  /** Tells two times of the same fault apart, where an acknowledgement is of one of them. */
  time?: string;
};

const idOf = ({ reason, subject, time }: Found): string =>
  `att_${crockford(hash('sha256', JSON.stringify([reason, subject, time]), 'buffer'), 26)}`;

/** An id for a command that is pasted into a shell. */
const shellWord = (id: string): string =>
  /^[A-Za-z0-9._-]+$/.test(id) ? id : `'${id.replaceAll("'", "'\\''")}'`;

const isoOf = (ms: number): string => new Date(ms).toISOString();

/** Of a merchant's id, or of `*`. Throws what its stores throw. */
type Read = (deps: AttentionDeps, merchantId: string) => AsyncGenerator<Found>;

const operationItems: Read = async function* (deps, merchantId) {
  const { commands, readModels, unresolvedAfterMs } = deps;
  for (const one of await listUnresolved(commands, readModels, merchantId)) {
    const { paymentId, operationId: subject, state, since, otherProvider, request } = one;
    const sum = `${one.operation} of ${(one.amountMinor / 100).toFixed(2)} ${one.currency}`;
    const now = commands.nowMs();
    const about = { paymentId, subject, since };
    const next = `payments reconcile ${shellWord(paymentId)}`;
    if (state === 'UNRESOLVED' && now - Date.parse(since) > unresolvedAfterMs) {
      const sent = otherProvider === undefined ? '' : `; it was sent to ${otherProvider}`;
      yield { reason: state, ...about, what: `The outcome of a ${sum} is not known${sent}.`, next };
    }
    if (state === 'CONTRADICTED') {
      const what = `The provider says other than the log of a ${sum}.`;
      yield { reason: state, ...about, what, next };
    }
    if (request === undefined) continue;
    const { requestedBy, requestedAt, outcome } = request;
    if (now >= Date.parse(requestedAt) + APPROVAL_MS_MAX) continue;
    const what = `${requestedBy} requested ${outcome} for a ${sum}, and a second person has to approve.`;
    const requested = { since: requestedAt, what, next: 'payments unresolved' };
    yield { reason: 'RESOLUTION_REQUESTED', ...about, ...requested };
  }
};

const parkedTopicsIn = (text: string | undefined) =>
  text === undefined ? {} : parseCheckpoint(text).parked;

/** Undefined for an event that can be read, and for a stream that is gone. Throws StoreUnavailable. */
const unreadableIn = async ({ store }: AttentionDeps, stream: string) => {
  const error = await store.readStream(stream).then(() => undefined, asUnreadable);
  return error instanceof StreamNotWhole ? undefined : error;
};

const NO_KEY = 'its key is missing, or is another one';

const paymentItems: Read = async function* (deps, merchantId) {
  const { readModels, documents } = deps;
  const owns = async (paymentId: string): Promise<boolean> =>
    merchantId === '*' || (await readModels.getAny(paymentId))?.merchantId === merchantId;
  const { unreadable = [], lastRunMs } = await recordIn(documents.reconciliation);
  const suspects = new Map(unreadable.map((paymentId) => [paymentId, isoOf(lastRunMs)]));
  for (const { paymentId, revision, reason, since } of await readModels.parked(LISTED_MAX)) {
    if (!(await owns(paymentId))) continue;
    suspects.set(paymentId, since);
    const what = `Its read model stopped at revision ${revision}: ${reason}.`;
    const next = `payments parked retry ${shellWord(paymentId)}`;
    yield { reason: 'PARKED_READ_MODEL', paymentId, subject: paymentId, since, what, next };
  }
  for (const [paymentId, since] of [...suspects].slice(0, READ_MAX)) {
    const error = (await owns(paymentId)) && (await unreadableIn(deps, streamOf(paymentId)));
    if (!error) continue;
    const what = `An event cannot be read: ${error.message}.`;
    const next = `payments verify ${shellWord(paymentId)}`;
    yield { reason: 'UNREADABLE_EVENT', paymentId, subject: paymentId, since, what, next };
  }
  const { boxes = [] } = await recordIn(documents.verification);
  const closed = new Map(boxes.map(({ stream, reason }) => [paymentOf(stream), reason]));
  for (const paymentId of deps.opener.missing) closed.set(paymentId, NO_KEY);
  for (const [paymentId, why] of closed) {
    if (paymentId === undefined || !(await owns(paymentId))) continue;
    const about = { paymentId, subject: paymentId, time: 'key' };
    const what = `Its names and addresses are not as the log says (${why}).`;
    yield { reason: 'UNREADABLE_EVENT', ...about, what, next: 'payments verify --keys' };
  }
  const parked = await readFrom(documents.relay, parkedTopicsIn, undefined);
  if (parked === undefined && merchantId === '*') {
    const what =
      "The relay's document cannot be read, so nothing is sent to the topics after a restart, and what is parked there is not listed.";
    yield { reason: 'PARKED_TOPIC', subject: 'log', what, next: 'payments topics parked' };
  }
  const listed = Object.entries(parked ?? {}).slice(0, LISTED_MAX);
  for (const [paymentId, { from, reason, since }] of listed) {
    if (!(await owns(paymentId))) continue;
    const what = `Its messages to the topics stopped at revision ${from}: ${reason}.`;
    const next = `payments topics retry ${shellWord(paymentId)}`;
    yield { reason: 'PARKED_TOPIC', paymentId, subject: paymentId, since, what, next };
  }
};

/** What is damaged hides nothing else. Throws StoreUnavailable and ReadModelsUnavailable. */
const readFrom = async <T>(
  document: Pick<KeyDocument, 'load'>,
  read: (text: string | undefined) => T,
  damaged: T,
): Promise<T> => {
  try {
    return read((await document.load())?.text);
  } catch (error) {
    if (error instanceof StoreUnavailable || error instanceof ReadModelsUnavailable) throw error;
    return damaged;
  }
};

/** `controlItems` tells of it. */
const unlessNotWhole = <T>(read: Promise<T>, otherwise: T): Promise<T> =>
  read.catch(onError(ControlNotWhole, () => otherwise));

const READ_WHOLE = [
  ATTENTION_STREAM,
  WEBHOOK_MERCHANTS_STREAM,
  SECRET_CHANGES_STREAM,
  PROVIDER_AHEAD_STREAM,
];

/** Streams of control that were deleted or cut: what rests on them stands still (gaps §29). */
const controlItems: Read = async function* ({ store }, only) {
  if (only !== '*' || store.stored.guarantee === 'log') return;
  const looks = [
    ...READ_WHOLE.map((stream) => () => readControl(store, stream)),
    // There are too many seals to read them at each look.
    () => store.lastRevision(SEALS_STREAM),
    () => logIdOf(store),
  ];
  for (const [time, look] of looks.entries()) {
    const error = await look().then(() => undefined, asUnreadable);
    if (error === undefined) continue;
    const what = `A stream by which the service works is not whole: ${error.message}.`;
    const next = 'payments verify --all';
    yield { reason: 'UNREADABLE_EVENT', subject: 'log', time: `${time}`, what, next };
  }
};

const endpointItems: Read = async function* ({ store }, only) {
  const all = () => unlessNotWhole(merchantsWithEndpoints(store), []);
  const merchantIds = only === '*' ? await all() : [only];
  for (const merchantId of merchantIds) {
    const read = await readableEndpoints(store, merchantId);
    if (read instanceof UnreadableStream) {
      const since = read.before.at(-1)?.time ?? isoOf(0);
      const what = `The webhook endpoints of ${merchantId} cannot be read: ${read.message}.`;
      const next = 'payments verify --all';
      yield { reason: 'UNREADABLE_EVENT', subject: 'log', time: merchantId, since, what, next };
      continue;
    }
    for (const { endpointId, url, disabled } of read.endpoints) {
      if (disabled === undefined || disabled.reason === 'REQUESTED') continue;
      const why = disabled.reason === 'GONE' ? 'it answered 410' : 'it took nothing for 72 hours';
      const what = `The service disabled the endpoint ${url}: ${why}.`;
      const next = `payments webhooks enable ${endpointId} --merchant ${shellWord(merchantId)}`;
      yield { reason: 'WEBHOOK_DISABLED', subject: endpointId, since: disabled.at, what, next };
    }
  }
};

/** A log that was never verified counts from its first event. */
const unverifiedSince = async (
  { store, verifyEveryMs, commands }: AttentionDeps,
  { lastRunMs }: CheckRecord,
): Promise<string | undefined> => {
  if (verifyEveryMs === 0) return undefined;
  const [first] = lastRunMs === 0 ? await store.readAll(null, 1) : [];
  if (first === undefined && lastRunMs === 0) return undefined;
  const fromMs = first !== undefined && 'time' in first ? Date.parse(first.time) : lastRunMs;
  const dueMs = fromMs + 2 * verifyEveryMs;
  return dueMs < commands.nowMs() ? isoOf(dueMs) : undefined;
};

const readAcknowledged = async ({ store }: AttentionDeps): Promise<Set<string>> => {
  const { events } = await unlessNotWhole(readControl(store, ATTENTION_STREAM), NO_EVENTS);
  return new Set(
    events.flatMap(({ event }) => (event.type === 'AttentionAcknowledged' ? [event.data.id] : [])),
  );
};

const recordIn = (document: Pick<KeyDocument, 'load'>): Promise<CheckRecord> =>
  readFrom(document, parseCheckRecord, parseCheckRecord(undefined));

const checkItems: Read = async function* (deps, merchantId) {
  if (merchantId !== '*') return;
  const verification = await recordIn(deps.documents.verification);
  const reconciliation = await recordIn(deps.documents.reconciliation);
  let acknowledged: Set<string> | undefined;
  for (const [reason, subject, { standing }, next] of [
    ['LOG_BROKEN', 'log', verification, 'payments verify --all'],
    ['LEDGER_DIFFERS', 'ledger', reconciliation, 'payments reconcile'],
  ] as const) {
    if (standing === undefined) continue;
    const { since, what } = standing;
    const item = { reason, subject, since, time: since, what: `${what}.`, next };
    acknowledged ??= await readAcknowledged(deps);
    if (!acknowledged.has(idOf(item))) yield item;
  }
  const since = await unverifiedSince(deps, verification);
  if (since === undefined) return;
  const what = 'The whole log was not verified within twice VERIFY_INTERVAL_MS.';
  yield { reason: 'LOG_UNVERIFIED', subject: 'log', since, what, next: 'payments verify --all' };
};

const MISCONFIGURED: Partial<Record<Misconfigured['reason'] | 'events', string>> = {
  unauthorized: 'rejects the key; nothing was charged',
  forbidden: 'rejects the key for an operation: it lacks the permission; nothing was charged',
  events:
    'lets the key read no events: a capture or cancel made there without a notice is found late',
};

const providerItems: Read = async function* (deps, merchantId) {
  const { providerAhead, rejections, elsewhereLook } = deps;
  if (merchantId !== '*') return;
  const ahead = providerAhead.now();
  const subject = 'provider';
  if (ahead !== undefined) {
    const what = 'The provider holds operations that the log does not, so merchants can only read.';
    const { since } = ahead;
    yield { reason: 'PROVIDER_AHEAD', subject, since, what, next: 'payments reconcile' };
  }
  for (const { reason, account, since } of [
    ...rejections.misconfigured(),
    ...elsewhereLook.barred(),
  ]) {
    const why = MISCONFIGURED[reason] ?? 'is not set up for an operation; nothing was charged';
    const of = account === undefined ? '' : `, account ${account},`;
    const what = `The provider${of} ${why}.`;
    const time = `${reason} ${account ?? ''}`;
    yield { reason: 'PROVIDER_MISCONFIGURED', subject, since, time, what, next: 'payments doctor' };
  }
};

/** Each reason is of one source, so that an engine out of reach leaves what the others know. */
const SOURCES: readonly [reasons: readonly AttentionReason[], ...reads: Read[]][] = [
  [['UNRESOLVED', 'RESOLUTION_REQUESTED', 'CONTRADICTED'], operationItems],
  [['PROVIDER_AHEAD', 'PROVIDER_MISCONFIGURED'], providerItems],
  [
    ['PARKED_READ_MODEL', 'PARKED_TOPIC', 'UNREADABLE_EVENT', 'WEBHOOK_DISABLED'],
    paymentItems,
    controlItems,
    endpointItems,
  ],
  [['LOG_BROKEN', 'LOG_UNVERIFIED', 'LEDGER_DIFFERS'], checkItems],
];

export const attentionSources = (deps: AttentionDeps) =>
  SOURCES.map(([reasons, ...reads]) => {
    const firstFound = new Map<string, string>();
    return {
      reasons,
      items: async (merchantId: string): Promise<AttentionItem[]> => {
        const items: AttentionItem[] = [];
        for (const read of reads) {
          for await (const found of read(deps, merchantId)) {
            const id = idOf(found);
            const now = isoOf(deps.commands.nowMs());
            const { time: _, ...item } = found;
            const since = found.since ?? firstFound.get(id) ?? now;
            if (found.since === undefined) firstFound.set(id, since);
            items.push({ id, ...item, since });
          }
        }
        const ids = new Set(items.map(({ id }) => id));
        if (merchantId === '*')
          for (const id of firstFound.keys()) if (!ids.has(id)) firstFound.delete(id);
        return items;
      },
    };
  });

/** Oldest first. Throws what the stores throw: a part of the list would look like all of it. */
export const attentionItems = async (
  sources: ReturnType<typeof attentionSources>,
  merchantId: string,
): Promise<AttentionItem[]> => {
  const found = await Promise.all(sources.map(({ items }) => items(merchantId)));
  return found.flat().sort((a, b) => (itemPlace(a) < itemPlace(b) ? -1 : 1));
};

export const itemPlace = ({ since, id }: AttentionItem): string => `${since} ${id}`;

/** All others end by themselves with their cause. */
export const isAcknowledgeable = <T extends { reason: AttentionReason }>(
  item: T,
): item is T & { reason: 'LOG_BROKEN' | 'LEDGER_DIFFERS' } =>
  item.reason === 'LOG_BROKEN' || item.reason === 'LEDGER_DIFFERS';
