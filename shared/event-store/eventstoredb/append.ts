import { randomUUID } from 'node:crypto';
import { backOffMs, pause } from '../../runtime/back-off.ts';
import { jsonFieldsOf } from '../../runtime/json.ts';
import { allReadable, type EncodedEvent } from '../codec.ts';
import { ownForms, type WholeReads, wholeForms } from '../control-stream.ts';
import { AppendOutcomeUnknown, RevisionConflict } from '../errors.ts';
import type { Expected, RecordedEvent } from '../port.ts';
import { type AppendRequest, type Stored, tooLarge } from './batch-messages.ts';
import { createBatchStream } from './batch-stream.ts';
import { type Call, callOutcomeOf, lineOf, notWhole, unavailable } from './call-outcome.ts';
import type { Credentials, StoreClient } from './client.ts';
import type { Connection } from './connection.ts';
import {
  fromServer,
  hashOfRecord,
  type LogPosition,
  type Proposed,
  positionText,
  proposed,
  storedFormOf,
  toServer,
} from './records.ts';
import { endedWithoutResponse, noteEnd, type Seen, type StreamReader } from './stream-reader.ts';

// The server's limit. A larger append could end the stream for all others.
const APPEND_BYTES_MAX = 1024 * 1024;
const APPEND_TRIES_MAX = 5;
const RETRY_MS = { minMs: 50, maxMs: 800 };

/** Counted as the server does: a type in UTF-16. */
const bytesOf = (batch: Proposed[]): number =>
  batch.reduce(
    (sum, { type, data, metadata }) => sum + 2 * type.length + data.length + metadata.length,
    0,
  );

/** On one BatchAppend stream of each client (ADR-0007). */
function createAppendCall(credentials: Credentials) {
  const streams = new WeakMap<StoreClient, ReturnType<typeof createBatchStream>>();
  return (client: StoreClient, request: AppendRequest): Call<Stored> => {
    if (bytesOf(request.batch) > APPEND_BYTES_MAX)
      return { response: Promise.reject(tooLarge(APPEND_BYTES_MAX)) };
    const stream = streams.get(client) ?? createBatchStream(client, credentials);
    streams.set(client, stream);
    return stream(request);
  };
}

/** Always the same ids at the same revision: at a newer one the server would store it twice. */
export function createSender(connection: Connection) {
  const { once, isClosed, credentials, callTimeoutMs } = connection;
  const call = createAppendCall(credentials);

  /** Throws StoreUnavailable, StreamNotWhole or AppendOutcomeUnknown. */
  return async (request: AppendRequest): Promise<Stored | { conflict: number }> => {
    const endsAt = performance.now() + callTimeoutMs;
    let mayBeStored = false;
    for (let attempts = 1; ; attempts++) {
      // Two tries without an answer leave time for a third, on a new client.
      const ms = Math.min(endsAt - performance.now(), callTimeoutMs * 0.4);
      try {
        return await once(ms, (client) => call(client, request));
      } catch (error) {
        const outcome = callOutcomeOf(error);
        if (outcome === 'conflict') return { conflict: actualRevision(error) };
        mayBeStored ||= outcome === 'unknown' || outcome === 'overdue';
        const waitMs = backOffMs(RETRY_MS, outcome === 'overdue' ? 0 : attempts);
        const late = performance.now() + waitMs + callTimeoutMs * 0.1 >= endsAt;
        const isFinal = outcome === 'refused' || outcome === 'deleted' || isClosed();
        if (attempts >= APPEND_TRIES_MAX || late || isFinal)
          throw mayBeStored ? new AppendOutcomeUnknown(lineOf(error)) : unavailable(error);
        await pause(waitMs);
      }
    }
  };
}

const actualRevision = (error: unknown): number => {
  const { actualVersion } = error as { actualVersion?: unknown };
  return typeof actualVersion === 'bigint' ? Number(actualVersion) : -1;
};

type BatchSender = ReturnType<typeof createSender>;

export function createAppender(send: BatchSender, streams: StreamReader, seen: Seen) {
  /** The server compares revisions only: an append at another hash was decided on another stream. */
  async function checkHash(stream: string, expected: Exclude<Expected, 'none'>): Promise<void> {
    const { revision, hash } = expected;
    let stored = seen.ends.get(stream);
    if (stored?.revision !== revision) {
      const [event] = await streams.part(stream, revision, 1);
      stored = event && { revision, hash: hashOfRecord(event) };
    }
    if (stored?.hash === hash) return;
    // Behind an event of others stands the hash of our last one (gaps §29).
    const { end } = ownForms((await streams.whole(stream)).map((one) => storedFormOf(one)));
    if (end === 'none' || end.revision !== revision || end.hash !== hash)
      throw new RevisionConflict(`${stream} does not have that hash there`);
  }

  async function afterConflict(
    stream: string,
    first: number,
    encoded: EncodedEvent[],
    last: number,
  ): Promise<RecordedEvent[]> {
    const conflict = new RevisionConflict(`${stream} ends at revision ${last}`);
    if (last < first + encoded.length - 1) throw conflict;
    const found = await streams.part(stream, first, encoded.length).catch((error: Error) => {
      throw new AppendOutcomeUnknown(error.message);
    });
    const isSame =
      found.length === encoded.length &&
      found.every(({ id }, index) => id === encoded[index]?.recorded.id);
    if (!isSame) throw conflict;
    if (found[0]?.revision !== BigInt(first)) throw notWhole(stream, 'deleted');
    return allReadable(found.map(fromServer));
  }

  /** The server names the place of the last event alone (docs/eventstoredb.md). */
  const placed = (encoded: EncodedEvent[], position: LogPosition | undefined): RecordedEvent[] =>
    encoded.map(({ recorded }, index) =>
      Object.assign(recorded, {
        position: index === encoded.length - 1 ? positionText(position) : '',
      }),
    );

  return async (stream: string, expected: Expected, encoded: EncodedEvent[]) => {
    // The server would take an append to a deleted stream, which then begins anew.
    if (seen.removals.get(stream)) await streams.mustBeWhole(stream);
    if (expected !== 'none') await checkHash(stream, expected);
    const after = expected === 'none' ? -1 : expected.revision;
    const sent = await send({ stream, after, batch: encoded.map(toServer) });
    // At "no stream" the server goes on where a deleted stream ended.
    if ('last' in sent && sent.last > after + encoded.length) throw notWhole(stream, 'deleted');
    const events =
      'conflict' in sent
        ? await afterConflict(stream, after + 1, encoded, sent.conflict)
        : placed(encoded, sent.position);
    noteEnd(seen, events.at(-1));
    return events;
  };
}

const VALUE_CLAIMED = 'ValueClaimed';

/** Our first event of a key's stream is the value; never claimed anew where that may be gone (gaps §29). */
export function createMetaClaims(send: BatchSender, reads: WholeReads) {
  const found = async (stream: string): Promise<{ value?: string; last: number }> => {
    const forms = await wholeForms(reads, stream);
    const last = forms.at(-1)?.revision ?? -1;
    const events = forms.map(({ text }) => jsonFieldsOf(text));
    const claimed = events.find(({ type }) => type === VALUE_CLAIMED);
    return claimed === undefined ? { last } : { value: String(Object(claimed.data).value), last };
  };
  return async (key: string, value: string): Promise<string> => {
    if (!/^[A-Za-z0-9_-]{1,100}$/.test(key)) throw new TypeError('not a key for a value');
    const stream = `meta-${key}`;
    const before = await found(stream);
    if (before.value !== undefined) return before.value;
    const claim = proposed(randomUUID(), VALUE_CLAIMED, { value }, {});
    await send({ stream, after: before.last, batch: [claim] }).catch((error) => {
      throw unavailable(error);
    });
    const now = await found(stream);
    if (now.value === undefined) throw endedWithoutResponse();
    return now.value;
  };
}
