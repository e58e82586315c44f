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

/** Drops the older of two generations at once: evicting one by one costs several times the GC. */
type GenerationsMap<V> = {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
};

/** Keeps at least the last `min` keys, at most twice as many. */
export const createGenerationsMap = <V>(min: number): GenerationsMap<V> => {
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

export type Link<P = unknown> = Omit<StoredForm, 'position'> & {
  position: P;
  /** Of the event before it in its stream, null for none. */
  hashBefore?: string | null;
};

type Break<P = unknown> = { position: P; stream: string; revision: number; reason: string };

/** Why a link does not follow those before it; `named` and `hashBefore` spare a look. */
export type Check = (
  link: Link,
  named?: Record<string, unknown>,
  hashBefore?: string | null,
) => string | undefined;

const verifyLinks = <P>(links: Iterable<Link<P>>, check: Check): Break<P> | undefined => {
  for (const link of links) {
    const reason = check(link);
    if (reason !== undefined) return breakAt(link, reason);
  }
  return undefined;
};

export const breakAt = <P>(
  { position, stream, revision }: Pick<Link<P>, 'position' | 'stream' | 'revision'>,
  reason: string,
): Break<P> => ({ position, stream, revision, reason });

export const describeBreak = ({ position, stream, revision, reason }: Break): string => {
  const inStream = stream === '' ? '' : `stream ${stream}, revision ${revision}`;
  if (position === '') return inStream === '' ? reason : `${inStream}: ${reason}`;
  return `position ${position}${inStream === '' ? '' : ` (${inStream})`}: ${reason}`;
};

/** An event that this service did not write. Acknowledgements name the text: it never changes. */
export const FOREIGN = 'no event of this service';

const CHANGED = 'its text does not have its hash';
const MOVED = 'its text belongs to another place';

export const hashReason = ({ text, hash }: Pick<Link, 'text' | 'hash'>): string | undefined => {
  if (hashOf(text) === hash) return undefined;
  const { type, previousHash } = jsonFieldsOf(text);
  // Every event of this service names the one before it, in each version.
  const isForeign = typeof type === 'string' && previousHash === undefined;
  return isForeign ? FOREIGN : CHANGED;
};

const placeReason = (link: Link, named: Record<string, unknown>): string | undefined => {
  const { stream, revision, id = String(named.id) } = link;
  const isThere = named.stream === stream && named.revision === revision && named.id === id;
  return isThere ? undefined : MOVED;
};

export type StreamEnd = { revision: number; hash: string };
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
  hashBefore: string | null | undefined,
): string | undefined =>
  previousHash === (hashBefore ?? GENESIS_HASH)
    ? undefined
    : 'it does not follow the event before it';

export const logReason = (
  { hash, logHash }: Pick<Link, 'hash' | 'logHash'>,
  logHashBefore: string,
): string | undefined => {
  if (linkLog(logHashBefore, hash) !== logHash) return 'it does not follow in the log';
  return undefined;
};

const linkReason = (link: Pick<Link, 'hash' | 'logHash' | 'logHashBefore'>): string | undefined =>
  // A missing event before it is no fault of this one: the log's check names the gap.
  link.logHashBefore == null ? undefined : logReason(link, link.logHashBefore);

/** Judges a link alone, without the other events of its stream. */
export const formReason = (
  form: Pick<Link, 'text' | 'hash' | 'logHash' | 'logHashBefore'>,
): string | undefined => hashReason(form) ?? linkReason(form);

/** Compares the next link after a break with what is stored. */
export const logCheck = (from: LogEnd = LOG_START): { check: Check; end(): LogEnd } => {
  let end = from;
  const missingBefore = ({ position }: Pick<Link, 'position'>): string | undefined =>
    Number(position) === end.position + 1 ? undefined : `position ${end.position + 1} is missing`;
  const reasonFor: Check = (link, named = {}, hashBefore = null) => {
    const missing = missingBefore(link);
    if (missing !== undefined) return missing;
    const own = hashReason(link) ?? placeReason(link, named);
    if (own !== undefined) return own;
    if (link.revision > 0 && hashBefore === null) return 'the event before it is missing';
    return previousReason(named.previousHash, hashBefore) ?? logReason(link, end.logHash);
  };
  const check: Check = (link, named = jsonFieldsOf(link.text), hashBefore = link.hashBefore) => {
    const reason = reasonFor(link, named, hashBefore);
    end = { position: Number(link.position), logHash: link.logHash ?? '' };
    return reason;
  };
  return { check, end: () => end };
};

export const verifyLog = <P>(
  links: Iterable<Link<P>>,
  from: LogEnd = LOG_START,
): { end: LogEnd } | { broken: Break<P> } => {
  const { check, end } = logCheck(from);
  const broken = verifyLinks(links, check);
  return broken === undefined ? { end: end() } : { broken };
};

/** An end that a bounded map has dropped must be set again. */
type StreamEnds = {
  get(stream: string): StreamEnd | undefined;
  set(stream: string, end: StreamEnd): unknown;
};

/** One change is one break; the service appends nothing after a foreign event. */
const endAfter = ({ revision, hash }: Link, reason: string | undefined): StreamEnd => {
  if (reason === FOREIGN) return { revision, hash: FOREIGN };
  return { revision, hash: reason === CHANGED || reason === MOVED ? NOT_COMPARED : hash };
};

/** Each stream alone, past every break; streams may be mixed. */
export const streamsCheck =
  (ends: StreamEnds = new Map()): Check =>
  (link, named = jsonFieldsOf(link.text)) => {
    const end = ends.get(link.stream);
    const hashBefore = end?.hash === NOT_COMPARED ? String(named.previousHash) : end?.hash;
    const reason =
      revisionReason(link.revision, end) ??
      hashReason(link) ??
      placeReason(link, named) ??
      previousReason(named.previousHash, hashBefore) ??
      linkReason(link);
    ends.set(link.stream, endAfter(link, reason));
    return reason;
  };

export const verifyStream = <P>(links: Iterable<Link<P>>): Break<P> | undefined =>
  verifyLinks(links, streamsCheck());

export const verifyPart = <P>(links: Iterable<Link<P>>): Break<P> | undefined => {
  const [first] = links;
  if (first === undefined || first.revision === 0) return verifyStream(links);
  const { previousHash } = jsonFieldsOf(first.text);
  const end = { revision: first.revision - 1, hash: String(previousHash) };
  return verifyLinks(links, streamsCheck(new Map([[first.stream, end]])));
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

/** Any other end is read again for its stream's next event. */
const STREAMS_KNOWN_MIN = 50_000;

/** Checks a whole log in order by the chain of `guarantee`; throws what the store throws. */
export const storedCheck = (
  stored: Pick<StoredForms, 'readStream'>,
  guarantee: StoredForms['guarantee'],
) => {
  const ends = createGenerationsMap<StreamEnd>(STREAMS_KNOWN_MIN);
  const inLog = logCheck().check;
  const inStream = streamsCheck(ends);

  const readBefore = async ({ stream, revision }: StoredForm): Promise<void> => {
    // A removed stream is a break, not a fault.
    const forms = await formsLeft(stored, stream);
    const found = forms.find((one) => one.revision === revision - 1);
    if (found) ends.set(stream, { revision: found.revision, hash: found.hash || FOREIGN });
  };

  const checkInLog = (form: StoredForm, named: Record<string, unknown>): string | undefined => {
    const { stream, revision, hash } = form;
    const end = ends.get(stream);
    const isKnown = revision > 0 && end?.revision === revision - 1;
    const reason = inLog(form, named, isKnown ? end.hash || String(named.previousHash) : null);
    // A changed hash is one break: the log's chain holds what follows it.
    ends.set(stream, { revision, hash: reason === undefined ? hash : NOT_COMPARED });
    return reason;
  };

  return async (
    form: StoredForm,
    named: Record<string, unknown> = jsonFieldsOf(form.text),
  ): Promise<string | undefined> => {
    const { stream, revision } = form;
    const end = ends.get(stream);
    const isKnown = guarantee === 'log' ? end?.revision === revision - 1 : end !== undefined;
    if (revision > 0 && !isKnown) await readBefore(form);
    return guarantee === 'log' ? checkInLog(form, named) : inStream(form, named);
  };
};
