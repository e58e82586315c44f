/**
 * The hash chains show a changed, moved or missing event; only a head kept outside shows a cut tail or a log
 * rewritten to its end. Only the text is read, so undecodable events are verified too.
 */
import { hash, randomUUID } from 'node:crypto';
import { onError } from '../runtime/error-text.ts';
import { jsonFieldsOf } from '../runtime/json.ts';
import { StreamNotWhole } from './errors.ts';
import type { EventStore, HashesAt, StoredForm, StoredForms } from './port.ts';

export const GENESIS_HASH = '0'.repeat(64);

export const hashOf = (text: string): string => hash('sha256', text);

export const linkLog = (logHashBefore: string, eventHash: string): string =>
  hashOf(logHashBefore + eventHash);

/** Adds log hashes where the store keeps none, to events in the log's order. */
export const logHashes = (logHashBefore = GENESIS_HASH) => {
  let end = logHashBefore;
  return <E extends Partial<HashesAt>>(event: E): E & { logHash: string } => {
    end = event.logHash ?? linkLog(end, event.hash ?? '');
    return event.logHash === end ? (event as E & { logHash: string }) : { ...event, logHash: end };
  };
};

export type LogEnd = { position: number; logHash: string };

export const LOG_START: LogEnd = { position: 0, logHash: GENESIS_HASH };

const KEY = 'log-id';

/** The UUID by which a kept manifest names a log, the same in a copy. Throws StoreUnavailable. */
export const logIdOf = (store: Pick<EventStore, 'claimMeta'>): Promise<string> =>
  store.claimMeta(KEY, randomUUID());

/** By names of streams. What a bounded one has dropped must be set again. */
export type ByStream<V> = {
  get(stream: string): V | undefined;
  set(stream: string, value: V): void;
};

/** Keeps the last `min` keys, at most twice as many: evicting one by one would cost several times the GC. */
export const createGenerationsMap = <V>(min: number): ByStream<V> => {
  let young = new Map<string, V>();
  let old = new Map<string, V>();
  return {
    get: (key) => young.get(key) ?? old.get(key),
    set: (key, value) => {
      if (young.size >= min && !young.has(key)) {
        old = young;
        young = new Map();
      }
      young.set(key, value);
    },
  };
};

type Place = Pick<StoredForm, 'position' | 'stream' | 'revision'>;

export const breakAt = ({ position, stream, revision }: Place, reason: string) => ({
  position,
  stream,
  revision,
  reason,
});

export const describeBreak = (broken: ReturnType<typeof breakAt>): string => {
  const { position, stream, revision, reason } = broken;
  const inStream = stream === '' ? '' : `stream ${stream}, revision ${revision}`;
  if (position === '') return inStream === '' ? reason : `${inStream}: ${reason}`;
  return `position ${position}${inStream === '' ? '' : ` (${inStream})`}: ${reason}`;
};

/** An event that this service did not write. Acknowledgements name the text: it never changes. */
export const FOREIGN = 'no event of this service';

const CHANGED = 'its text does not have its hash';
export const MOVED = 'its text belongs to another place';

export const hashReason = ({ text, hash }: Pick<StoredForm, 'text' | 'hash'>) => {
  if (hashOf(text) === hash) return undefined;
  const { type, previousHash } = jsonFieldsOf(text);
  // Every event of this service names the one before it, in each version.
  const isForeign = typeof type === 'string' && previousHash === undefined;
  return isForeign ? FOREIGN : CHANGED;
};

type Named = Record<string, unknown>;

const placeReason = (form: StoredForm, named: Named): string | undefined => {
  const { stream, revision, id = String(named.id) } = form;
  const isThere = named.stream === stream && named.revision === revision && named.id === id;
  return isThere ? undefined : MOVED;
};

/** `ours`: the hash of the last event of ours, where events of others follow it (gaps §29). */
type StreamEnd = { revision: number; hash: string; ours?: string };
const NOT_COMPARED = '';

export const revisionReason = (
  revision: number,
  end: StreamEnd | undefined,
): string | undefined => {
  const next = (end?.revision ?? -1) + 1;
  return revision === next ? undefined : `revision ${next} is missing`;
};

const NOT_FOLLOWING = 'it does not follow the event before it';

export const previousReason = (
  previousHash: unknown,
  hashBefore = GENESIS_HASH,
): string | undefined => (previousHash === hashBefore ? undefined : NOT_FOLLOWING);

export const logReason = (
  { hash, logHash }: Pick<StoredForm, 'hash' | 'logHash'>,
  logHashBefore: string,
): string | undefined =>
  linkLog(logHashBefore, hash) === logHash ? undefined : 'it does not follow in the log';

/** Judges an event alone, without the others of its stream. */
export const formReason = (form: StoredForm): string | undefined =>
  hashReason(form) ?? linkReason(form);

const linkReason = (form: StoredForm): string | undefined =>
  // A missing event before it is no fault of this one: the log's check names the gap.
  form.logHashBefore == null ? undefined : logReason(form, form.logHashBefore);

/** An event of this service, behind the one of ours that has this hash (gaps §29). */
export const isOursAfter = (form: StoredForm, hashBefore: string): boolean => {
  const named = jsonFieldsOf(form.text);
  return (
    named.previousHash === hashBefore &&
    (hashReason(form) ?? placeReason(form, named)) === undefined
  );
};

/** One change is one break. */
const endAfter = (
  { revision, hash }: StoredForm,
  reason: string | undefined,
  ours: string | undefined,
): StreamEnd => {
  if (reason === CHANGED || reason === MOVED) return { revision, hash: NOT_COMPARED };
  const end = { revision, hash: reason === FOREIGN ? FOREIGN : hash };
  return ours === undefined ? end : { ...end, ours };
};

/** Returns a break's reason and goes on after it. Streams may be mixed; `isPart`: they may begin midway. */
export const streamsCheck =
  (ends: ByStream<StreamEnd> = new Map(), isPart = false) =>
  (form: StoredForm, named: Named = jsonFieldsOf(form.text)): string | undefined => {
    const { stream, revision } = form;
    const known = ends.get(stream);
    const isBeginning = known === undefined && isPart && revision > 0;
    const end = isBeginning ? { revision: revision - 1, hash: NOT_COMPARED } : known;
    const { hash: before = GENESIS_HASH, ours } = end ?? {};
    const isCompared = before !== NOT_COMPARED && named.previousHash !== ours;
    const hashBefore = isCompared ? before : String(named.previousHash);
    const reason =
      revisionReason(revision, end) ??
      hashReason(form) ??
      placeReason(form, named) ??
      previousReason(named.previousHash, hashBefore) ??
      linkReason(form);
    const isOfOthers = reason === FOREIGN || reason === NOT_FOLLOWING;
    const oursNow = isOfOthers ? (ours ?? before) : isCompared ? ours : undefined;
    ends.set(stream, endAfter(form, reason, oursNow));
    return reason;
  };

export const verifyStream = (forms: readonly StoredForm[], isPart = false) => {
  const check = streamsCheck(new Map(), isPart);
  for (const form of forms) {
    const reason = check(form);
    if (reason !== undefined) return breakAt(form, reason);
  }
  return undefined;
};

/** To show or check, never to decide on; empty for a removed stream. Throws StoreUnavailable. */
export const formsLeft = async (
  { readStream }: Pick<StoredForms, 'readStream'>,
  stream: string,
): Promise<StoredForm[]> => readStream(stream).catch(onError(StreamNotWhole, () => []));

/** Why an event does not follow in the log after `from`; the next one is compared with what is stored. */
const logCheck = (from: LogEnd) => {
  let end = from;
  const reasonFor = (form: StoredForm, named: Named, hashBefore: string | undefined) => {
    const next = end.position + 1;
    if (Number(form.position) !== next) return `position ${next} is missing`;
    const own = hashReason(form) ?? placeReason(form, named);
    if (own !== undefined) return own;
    if (form.revision > 0 && hashBefore === undefined) return 'the event before it is missing';
    return previousReason(named.previousHash, hashBefore) ?? logReason(form, end.logHash);
  };
  return (...link: Parameters<typeof reasonFor>): string | undefined => {
    const reason = reasonFor(...link);
    const [{ position, logHash = '' }] = link;
    end = { position: Number(position), logHash };
    return reason;
  };
};

/** Any other end is read again for its stream's next event. */
const STREAMS_KNOWN_MIN = 50_000;

/** The events before an event in its stream, read anew; a removed stream is a break, not a fault. */
export const beforeIn =
  (stored: Pick<StoredForms, 'readStream'>) =>
  async ({ stream, revision }: Pick<StoredForm, 'stream' | 'revision'>): Promise<StoredForm[]> =>
    (await formsLeft(stored, stream)).filter((one) => one.revision < revision);

/** Checks a log in order after `from`. `before` reads an unknown stream's earlier events; it may throw. */
export const storedCheck = (
  before: (form: StoredForm) => Promise<StoredForm[]>,
  guarantee: StoredForms['guarantee'],
  from = LOG_START,
) => {
  const ends = createGenerationsMap<StreamEnd>(STREAMS_KNOWN_MIN);
  const inLog = logCheck(from);
  const inStream = streamsCheck(ends);
  const readBefore = streamsCheck(ends, true);

  const checkInLog = (form: StoredForm, named: Named): string | undefined => {
    const { stream, revision, hash } = form;
    const end = ends.get(stream);
    const isKnown = revision > 0 && end?.revision === revision - 1;
    const reason = inLog(form, named, isKnown ? end.hash || String(named.previousHash) : undefined);
    // A changed hash is one break: the log's chain holds what follows it.
    ends.set(stream, { revision, hash: reason === undefined ? hash : NOT_COMPARED });
    return reason;
  };

  return async (
    form: StoredForm,
    named: Named = jsonFieldsOf(form.text),
  ): Promise<string | undefined> => {
    const { stream, revision } = form;
    const end = ends.get(stream);
    const isKnown = guarantee === 'log' ? end?.revision === revision - 1 : end !== undefined;
    const found = revision > 0 && !isKnown ? await before(form) : [];
    const last = found.at(-1);
    if (guarantee === 'stream') for (const one of found) readBefore(one);
    else if (last?.revision === revision - 1)
      ends.set(stream, { revision: last.revision, hash: last.hash || FOREIGN });
    return guarantee === 'log' ? checkInLog(form, named) : inStream(form, named);
  };
};
