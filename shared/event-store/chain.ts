/**
 * The hash chains show a changed, moved or missing event, but neither a cut tail nor a log
 * rewritten to its end: a head kept outside shows those. Only the text is read, so that events are verified
 * which the current code cannot decode.
 */
import { hash, randomUUID } from 'node:crypto';
import { jsonFieldsOf } from '../runtime/json.ts';
import { StreamNotWhole } from './errors.ts';
import type { EventStore, StoredForm, StoredForms } from './port.ts';

export const GENESIS_HASH = '0'.repeat(64);

export const hashOf = (text: string): string => hash('sha256', text);

export const linkLog = (logHashBefore: string, eventHash: string): string =>
  hashOf(logHashBefore + eventHash);

type Hashed = { hash?: string; logHash?: string };

/** Adds log hashes where the store keeps none, to events in the log's order. */
export const logHashes = (logHashBefore = GENESIS_HASH) => {
  let end = logHashBefore;
  return <E extends Hashed>(event: E): E & { logHash: string } => {
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

/**
 * Keeps at least the last `min` keys, at most twice as many. Drops the older of two generations at
 * once: evicting one by one costs several times the GC.
 */
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
const MOVED = 'its text belongs to another place';

export const hashReason = ({ text, hash }: Pick<StoredForm, 'text' | 'hash'>) => {
  if (hashOf(text) === hash) return undefined;
  const { type, previousHash } = jsonFieldsOf(text);
  // Every event of this service names the one before it, in each version.
  const isForeign = typeof type === 'string' && previousHash === undefined;
  return isForeign ? FOREIGN : CHANGED;
};

/** The fields of an event's text. */
type Named = Record<string, unknown>;

const placeReason = (form: StoredForm, named: Named): string | undefined => {
  const { stream, revision, id = String(named.id) } = form;
  const isThere = named.stream === stream && named.revision === revision && named.id === id;
  return isThere ? undefined : MOVED;
};

type StreamEnd = { revision: number; hash: string };
const NOT_COMPARED = '';

export const revisionReason = (
  revision: number,
  end: StreamEnd | undefined,
): string | undefined => {
  const next = (end?.revision ?? -1) + 1;
  return revision === next ? undefined : `revision ${next} is missing`;
};

export const previousReason = (
  previousHash: unknown,
  hashBefore = GENESIS_HASH,
): string | undefined =>
  previousHash === hashBefore ? undefined : 'it does not follow the event before it';

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

/** One change is one break; the service appends nothing after a foreign event. */
const endAfter = ({ revision, hash }: StoredForm, reason: string | undefined): StreamEnd => {
  if (reason === FOREIGN) return { revision, hash: FOREIGN };
  return { revision, hash: reason === CHANGED || reason === MOVED ? NOT_COMPARED : hash };
};

/**
 * Why an event does not follow in its stream, past every break; streams may be mixed. `isPart`: they
 * may begin in their middle.
 */
export const streamsCheck =
  (ends: ByStream<StreamEnd> = new Map(), isPart = false) =>
  (form: StoredForm, named: Named = jsonFieldsOf(form.text)): string | undefined => {
    const { stream, revision } = form;
    const known = ends.get(stream);
    const isBeginning = known === undefined && isPart && revision > 0;
    const end = isBeginning ? { revision: revision - 1, hash: NOT_COMPARED } : known;
    const hashBefore = end?.hash === NOT_COMPARED ? String(named.previousHash) : end?.hash;
    const reason =
      revisionReason(revision, end) ??
      hashReason(form) ??
      placeReason(form, named) ??
      previousReason(named.previousHash, hashBefore) ??
      linkReason(form);
    ends.set(stream, endAfter(form, reason));
    return reason;
  };

/** The first break of a stream. */
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
): Promise<StoredForm[]> => {
  try {
    return await readStream(stream);
  } catch (error) {
    if (error instanceof StreamNotWhole) return [];
    throw error;
  }
};

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

/** The event before an event in its stream, read anew; a removed stream is a break, not a fault. */
export const beforeIn =
  (stored: Pick<StoredForms, 'readStream'>) =>
  async ({ stream, revision }: StoredForm): Promise<StoredForm | undefined> =>
    (await formsLeft(stored, stream)).find((one) => one.revision === revision - 1);

/**
 * Checks a log in order after `from` by the chain of `guarantee`. `before` reads the event before one whose
 * stream is not known; what it throws is thrown.
 */
export const storedCheck = (
  before: ReturnType<typeof beforeIn>,
  guarantee: StoredForms['guarantee'],
  from = LOG_START,
) => {
  const ends = createGenerationsMap<StreamEnd>(STREAMS_KNOWN_MIN);
  const inLog = logCheck(from);
  const inStream = streamsCheck(ends);

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
    const found = revision > 0 && !isKnown ? await before(form) : undefined;
    if (found) ends.set(stream, { revision: found.revision, hash: found.hash || FOREIGN });
    return guarantee === 'log' ? checkInLog(form, named) : inStream(form, named);
  };
};
