/**
 * What needs a person (gaps §25), read at each request from where it is known: this process's unresolved
 * operations, the read models, the event store, and the documents that the projector and the checks of the
 * whole log keep. Nothing else is stored of an item but its acknowledgement.
 */
import { hash } from 'node:crypto';
import { z } from 'zod';
import { type CheckRecord, parseCheckRecord } from '../../shared/check-record.ts';
import {
  StoreUnavailable,
  StreamNotWhole,
  UnreadableStream,
} from '../../shared/event-store/errors.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import type { KeyDocument } from '../../shared/key-document.ts';
import { ATTENTION_STREAM } from '../../shared/payment/audit-events.ts';
import { APPROVAL_MS_MAX } from '../../shared/payment/decide-resolution.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import { ReadModelsUnavailable } from '../../shared/read-models/errors.ts';
import type { ReadModelsReader } from '../../shared/read-models/port.ts';
import { crockford } from '../../shared/runtime/ids.ts';
import { merchantsWithEndpoints, readableEndpoints } from '../../shared/webhooks/endpoint-log.ts';
import type { CommandDeps } from '../deps.ts';
import { listUnresolved } from '../operator/list-unresolved.ts';
import type { Misconfigured } from '../provider/resilience.ts';
import type { ProviderAhead } from '../provider-ahead/provider-ahead.ts';
import type { UnresolvedOperation } from '../recovery/unresolved.ts';
import type { BarredLook } from '../recovery/untold.ts';
import type { AttentionItem, AttentionReason } from './contract.ts';

export const UNRESOLVED_AFTER_MS = 15 * 60_000;

/** Of each source. */
const LISTED_MAX = 1_000;
/** The streams of payments that are read to tell an event that cannot be read from one that does not fit. */
const READ_MAX = 100;

type AttentionDeps = {
  commands: CommandDeps;
  store: Pick<EventStore, 'readStream' | 'readAll'>;
  readModels: Pick<ReadModelsReader, 'unresolved' | 'parked' | 'getAny'>;
  providerAhead: Pick<ProviderAhead, 'now'>;
  rejections: { misconfigured(): Misconfigured[] };
  endedLook: { barred(): BarredLook[] };
  documents: Record<'relay' | 'verification' | 'reconciliation', Pick<KeyDocument, 'load'>>;
  verifyEveryMs: number;
  unresolvedAfterMs: number;
};

type Found = Omit<AttentionItem, 'id'> & {
  /** Tells two times of the same fault apart, where an acknowledgement is of one of them. */
  time?: string;
};

const idOf = ({ reason, subject, time }: Found): string =>
  `att_${crockford(hash('sha256', JSON.stringify([reason, subject, time]), 'buffer'), 26)}`;

const isoOf = (ms: number): string => new Date(ms).toISOString();

const itemsOf = (
  one: UnresolvedOperation,
  { unresolvedAfterMs, commands }: AttentionDeps,
): Found[] => {
  const { paymentId, operationId, state, operation, since, otherProvider, request } = one;
  const item = (reason: AttentionReason, from: string, what: string, next: string): Found[] => [
    { reason, paymentId, subject: operationId, since: from, what, next },
  ];
  const sum = `${operation} of ${(one.amountMinor / 100).toFixed(2)} ${one.currency}`;
  const now = commands.nowMs();
  const look = `payments reconcile ${paymentId}`;
  const found: Found[] = [];
  if (state === 'UNRESOLVED' && now - Date.parse(since) > unresolvedAfterMs) {
    const sent = otherProvider === undefined ? '' : `; it was sent to ${otherProvider}`;
    found.push(...item('UNRESOLVED', since, `The outcome of a ${sum} is not known${sent}.`, look));
  }
  if (state === 'CONTRADICTED') {
    const what = `The provider says other than the log of a ${sum}.`;
    found.push(...item('CONTRADICTED', since, what, look));
  }
  if (request !== undefined && now < Date.parse(request.requestedAt) + APPROVAL_MS_MAX) {
    const what = `${request.requestedBy} requested ${request.outcome} for a ${sum}, and a second person has to approve.`;
    found.push(...item('RESOLUTION_REQUESTED', request.requestedAt, what, 'payments unresolved'));
  }
  return found;
};

const relayParked = z.object({
  parked: z.record(z.string(), z.object({ from: z.int(), reason: z.string(), since: z.string() })),
});
const parkedTopicsIn = (text = '{"parked":{}}') => relayParked.parse(JSON.parse(text)).parked;

const unreadable = (error: unknown): UnreadableStream => {
  if (error instanceof UnreadableStream) return error;
  throw error;
};

/** Undefined for an event that can be read, and for a stream that is gone. Throws StoreUnavailable. */
const unreadableIn = async (
  { store }: AttentionDeps,
  stream: string,
): Promise<UnreadableStream | undefined> => {
  const read = await store.readStream(stream).catch(unreadable);
  return read instanceof UnreadableStream && !(read instanceof StreamNotWhole) ? read : undefined;
};

const parkedItems = async (deps: AttentionDeps, merchantId: string): Promise<Found[]> => {
  const { readModels, documents } = deps;
  const owns = async (paymentId: string): Promise<boolean> =>
    merchantId === '*' || (await readModels.getAny(paymentId))?.merchantId === merchantId;
  const { unreadable = [], lastRunMs } = await recordIn(documents.reconciliation);
  const found: Found[] = [];
  const suspects = new Map(unreadable.map((paymentId) => [paymentId, isoOf(lastRunMs)]));
  for (const { paymentId, revision, reason, since } of await readModels.parked(LISTED_MAX)) {
    if (!(await owns(paymentId))) continue;
    suspects.set(paymentId, since);
    const what = `Its read model stopped at revision ${revision}: ${reason}.`;
    const next = `payments parked retry ${paymentId}`;
    found.push({ reason: 'PARKED_READ_MODEL', paymentId, subject: paymentId, since, what, next });
  }
  for (const [paymentId, since] of [...suspects].slice(0, READ_MAX)) {
    if (!(await owns(paymentId))) continue;
    const error = await unreadableIn(deps, streamOf(paymentId));
    if (error === undefined) continue;
    const what = `An event cannot be read: ${error.message}.`;
    const next = `payments verify ${paymentId}`;
    found.push({ reason: 'UNREADABLE_EVENT', paymentId, subject: paymentId, since, what, next });
  }
  const parked = await readFrom(documents.relay, parkedTopicsIn, undefined);
  if (parked === undefined && merchantId === '*') {
    const what =
      "The relay's document cannot be read, so nothing is sent to the topics after a restart, and what is parked there is not listed.";
    const since = isoOf(deps.commands.nowMs());
    const next = 'payments topics parked';
    found.push({ reason: 'PARKED_TOPIC', subject: 'log', since, what, next });
  }
  for (const [paymentId, { from, reason, since }] of Object.entries(parked ?? {}).slice(
    0,
    LISTED_MAX,
  )) {
    if (!(await owns(paymentId))) continue;
    const what = `Its messages to the topics stopped at revision ${from}: ${reason}.`;
    const next = `payments topics retry ${paymentId}`;
    found.push({ reason: 'PARKED_TOPIC', paymentId, subject: paymentId, since, what, next });
  }
  return found;
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

const endpointItems = async ({ store }: AttentionDeps, only: string): Promise<Found[]> => {
  const merchantIds = only === '*' ? await merchantsWithEndpoints(store) : [only];
  const found: Found[] = [];
  for (const merchantId of merchantIds) {
    const read = await readableEndpoints(store, merchantId);
    if (read instanceof UnreadableStream) {
      found.push({
        reason: 'UNREADABLE_EVENT',
        subject: 'log',
        time: merchantId,
        since: read.before.at(-1)?.time ?? isoOf(0),
        what: `The webhook endpoints of ${merchantId} cannot be read: ${read.message}.`,
        next: 'payments verify --all',
      });
      continue;
    }
    for (const { endpointId, url, disabled } of read.endpoints) {
      if (disabled === undefined || disabled.reason === 'REQUESTED') continue;
      const why = disabled.reason === 'GONE' ? 'it answered 410' : 'it took nothing for 72 hours';
      found.push({
        reason: 'WEBHOOK_DISABLED',
        subject: endpointId,
        since: disabled.at,
        what: `The service disabled the endpoint ${url}: ${why}.`,
        next: `payments webhooks enable ${endpointId} --merchant ${merchantId}`,
      });
    }
  }
  return found;
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
  const events = await store.readStream(ATTENTION_STREAM);
  return new Set(
    events.flatMap(({ event }) => (event.type === 'AttentionAcknowledged' ? [event.data.id] : [])),
  );
};

const recordIn = (document: Pick<KeyDocument, 'load'>): Promise<CheckRecord> =>
  readFrom(document, parseCheckRecord, parseCheckRecord(undefined));

const checkItems = async (deps: AttentionDeps): Promise<Found[]> => {
  const verification = await recordIn(deps.documents.verification);
  const reconciliation = await recordIn(deps.documents.reconciliation);
  let acknowledged: Set<string> | undefined;
  const found: Found[] = [];
  for (const [reason, subject, { standing }, next] of [
    ['LOG_BROKEN', 'log', verification, 'payments verify --all'],
    ['LEDGER_DIFFERS', 'ledger', reconciliation, 'payments reconcile'],
  ] as const) {
    if (standing === undefined) continue;
    const { since, what } = standing;
    const item = { reason, subject, since, time: since, what: `${what}.`, next };
    acknowledged ??= await readAcknowledged(deps);
    if (!acknowledged.has(idOf(item))) found.push(item);
  }
  const since = await unverifiedSince(deps, verification);
  if (since !== undefined) {
    const what = 'The whole log was not verified within twice VERIFY_INTERVAL_MS.';
    const next = 'payments verify --all';
    found.push({ reason: 'LOG_UNVERIFIED', subject: 'log', since, what, next });
  }
  return found;
};

const operationItems = async (deps: AttentionDeps, merchantId: string): Promise<Found[]> => {
  const listed = await listUnresolved(deps.commands, deps.readModels, merchantId);
  return listed.flatMap((one) => itemsOf(one, deps));
};

const aheadItems = ({ providerAhead }: AttentionDeps): Found[] => {
  const ahead = providerAhead.now();
  if (ahead === undefined) return [];
  const what = 'The provider holds operations that the log does not, so merchants can only read.';
  const { since } = ahead;
  const next = 'payments reconcile';
  return [{ reason: 'PROVIDER_AHEAD', subject: 'provider', since, what, next }];
};

const MISCONFIGURED: Partial<Record<Misconfigured['reason'] | 'events', string>> = {
  unauthorized: 'rejects the key; nothing was charged',
  forbidden: 'rejects the key for an operation: it lacks the permission; nothing was charged',
  events:
    'lets the key read no events: a capture or cancel made there without a notice is found late',
};

const misconfiguredItems = ({ rejections, endedLook }: AttentionDeps): Found[] =>
  [...rejections.misconfigured(), ...endedLook.barred()].map(({ reason, account, since }) => {
    const why = MISCONFIGURED[reason] ?? 'is not set up for an operation; nothing was charged';
    const of = account === undefined ? '' : `, account ${account},`;
    const what = `The provider${of} ${why}.`;
    const time = `${reason} ${account ?? ''}`;
    const next = 'payments doctor';
    return { reason: 'PROVIDER_MISCONFIGURED', subject: 'provider', since, time, what, next };
  });

/** A merchant's id, or `*`. Throws what its stores throw. */
type AttentionSource = {
  reasons: readonly AttentionReason[];
  items(merchantId: string): Promise<AttentionItem[]>;
};

/** Each reason is of one source, so that an engine out of reach leaves what the others know. */
export const attentionSources = (deps: AttentionDeps): AttentionSource[] => {
  const source = (
    reasons: readonly AttentionReason[],
    read: (merchantId: string) => Promise<Found[]>,
  ): AttentionSource => ({
    reasons,
    items: async (merchantId) =>
      (await read(merchantId)).map((found) => {
        const { time: _, ...item } = found;
        return { id: idOf(found), ...item };
      }),
  });
  const ofAll = (merchantId: string, read: () => Found[] | Promise<Found[]>) =>
    merchantId === '*' ? read() : [];
  return [
    source(['UNRESOLVED', 'RESOLUTION_REQUESTED', 'CONTRADICTED'], (merchantId) =>
      operationItems(deps, merchantId),
    ),
    source(['PROVIDER_AHEAD', 'PROVIDER_MISCONFIGURED'], async (merchantId) =>
      ofAll(merchantId, () => [...aheadItems(deps), ...misconfiguredItems(deps)]),
    ),
    source(
      ['PARKED_READ_MODEL', 'PARKED_TOPIC', 'UNREADABLE_EVENT', 'WEBHOOK_DISABLED'],
      async (merchantId) => [
        ...(await parkedItems(deps, merchantId)),
        ...(await endpointItems(deps, merchantId)),
      ],
    ),
    source(['LOG_BROKEN', 'LOG_UNVERIFIED', 'LEDGER_DIFFERS'], async (merchantId) =>
      ofAll(merchantId, () => checkItems(deps)),
    ),
  ];
};

/** Oldest first. Throws what the stores throw: a part of the list would look like all of it. */
export const attentionItems = async (
  sources: readonly AttentionSource[],
  merchantId: string,
): Promise<AttentionItem[]> => {
  const found = await Promise.all(sources.map(({ items }) => items(merchantId)));
  return found.flat().sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1));
};

/** Sorts by time, then by id. */
export const placeOf = ({ since, id }: AttentionItem): string => `${since} ${id}`;

/** All others end by themselves with their cause. */
export const isAcknowledgeable = <T extends { reason: AttentionReason }>(
  item: T,
): item is T & { reason: 'LOG_BROKEN' | 'LEDGER_DIFFERS' } =>
  item.reason === 'LOG_BROKEN' || item.reason === 'LEDGER_DIFFERS';
