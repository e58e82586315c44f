/**
 * Verifies stored forms, one after the other, in whatever order a log or a stream hands them out.
 * Only the text is looked at, so an event that no longer decodes is verified like any other.
 */
import { createBoundedMap } from '../runtime/bounded-map.ts';
import { LOG_START, type LogEnd, streamReason, verifyLog } from './chain.ts';
import type { Position, StoredForm, StoredForms } from './port.ts';

/** The first event that does not fit, and why. */
export type Break = { position: Position; stream: string; revision: number; reason: string };

/** Gives why a form does not follow those before it, or undefined where it does. */
export type Check = (form: StoredForm) => Promise<string | undefined>;

/** Streams known by heart; the end of any other is read again when one of its events comes up. */
const STREAMS_KNOWN_MAX = 100_000;

const idIn = (text: string): string => {
  try {
    return String(Object(JSON.parse(text)).id);
  } catch {
    return '';
  }
};

const inStream = (form: StoredForm, hashBefore: string | null): string | undefined =>
  streamReason({ ...form, id: form.id ?? idIn(form.text), hashBefore });

const missing = (revision: number): string => `revision ${revision} is missing`;

/** Checks the chain over the whole log, from its first event or from a known end. */
export const logCheck = (from: LogEnd = LOG_START): Check => {
  let end = from;
  return async (form) => {
    const { position, id = idIn(form.text), logHash = '', hashBefore = null } = form;
    const row = { ...form, position: Number(position), id, logHash, hashBefore };
    const result = verifyLog([row], end);
    if ('broken' in result) return result.broken.reason;
    end = result.end;
    return undefined;
  };
};

type StreamEnd = { revision: number; hash: string };

/** Checks each stream on its own; its events come in their order, with others in between. */
export const streamsCheck = (readStream: StoredForms['readStream']): Check => {
  const ends = createBoundedMap<StreamEnd>(STREAMS_KNOWN_MAX);
  const remember = ({ stream, revision, hash }: StoredForm): void => {
    ends.set(stream, { revision, hash });
  };
  const endBefore = async ({ stream, revision }: StoredForm): Promise<StreamEnd | undefined> =>
    ends.get(stream) ??
    (revision === 0
      ? undefined
      : (await readStream(stream)).find((form) => form.revision === revision - 1));
  return async (form) => {
    const end = await endBefore(form);
    if (form.revision !== (end?.revision ?? -1) + 1) return missing((end?.revision ?? -1) + 1);
    const reason = inStream(form, end?.hash ?? null);
    if (reason === undefined) remember(form);
    return reason;
  };
};

/** Verifies one whole stream: its first break, or undefined. */
export const verifyStreamForms = (forms: readonly StoredForm[]): Break | undefined => {
  let before: StoredForm | undefined;
  for (const form of forms) {
    const expected = (before?.revision ?? -1) + 1;
    const reason =
      form.revision === expected ? inStream(form, before?.hash ?? null) : missing(expected);
    if (reason !== undefined) return breakAt(form, reason);
    before = form;
  }
  return undefined;
};

export const breakAt = (
  { position, stream, revision }: Pick<StoredForm, 'position' | 'stream' | 'revision'>,
  reason: string,
): Break => ({ position, stream, revision, reason });
