/**
 * The file of ERASURE_LEDGER: each erasure is also a line there, on disk before it is answered, because a restore may
 * put back a log and keys from before it. A line that a crash cut short is of an erasure that was not answered.
 */
import { appendFile, constants, type FileHandle, open } from 'node:fs/promises';
import { z } from 'zod';
import { expectedAfter } from '../../shared/event-store/codec.ts';
import { appendControl } from '../../shared/event-store/control-stream.ts';
import { UnreadableStream } from '../../shared/event-store/errors.ts';
import { foldStream } from '../../shared/event-store/fold-stream.ts';
import type { EventStore, RecordedEvent } from '../../shared/event-store/port.ts';
import { paymentOf, paymentSchemas, streamOf } from '../../shared/payment/events.ts';
import { foldState } from '../../shared/payment/fold.ts';
import { onError } from '../../shared/runtime/error-text.ts';
import { newEventId } from '../../shared/runtime/ids.ts';
import { jsonValueOf } from '../../shared/runtime/json.ts';
import { PersonalDataRefused } from '../open.ts';
import type { KeyStore } from '../port.ts';

const text = z.string();
const line = z.object({
  ...{ position: text, hash: text, time: text, paymentId: text },
  ...paymentSchemas.PaymentPersonalDataErased.shape,
});
export type Erasure = z.infer<typeof line>;

export const ERASED = 'PaymentPersonalDataErased';

export const erasuresIn = (events: readonly RecordedEvent[]): Erasure[] =>
  events.flatMap(({ position, hash, time, stream, event: { type, data } }) =>
    type === ERASED ? [{ position, hash, time, paymentId: paymentOf(stream) ?? '', ...data }] : [],
  );

const { O_APPEND, O_RDWR, O_WRONLY } = constants;

/** Never made: where its volume is not mounted, a new file would know of no erasure. Throws PersonalDataRefused. */
const openFile = (file: string): Promise<FileHandle> =>
  open(file, O_RDWR | O_APPEND).catch(({ code }) => {
    throw new PersonalDataRefused(
      `ERASURE_LEDGER: ${file} cannot be read and written (${code}); mount its volume, or make an empty file the first time`,
    );
  });

/** It begins with the line break, so that a line that was cut short spoils no other one. */
const append = (file: string, erasure: Erasure): Promise<void> =>
  appendFile(file, `\n${JSON.stringify(erasure)}`, { flag: O_APPEND | O_WRONLY, flush: true });

/** The last line of each payment: carried out again, it has a place in the log that was put back. */
const readLast = async (file: string, bytes: number): Promise<Map<string, Erasure>> => {
  const last = new Map<string, Erasure>();
  await using handle = await openFile(file);
  const { size } = await handle.stat();
  const lines = handle.readLines({ start: Math.max(0, size - bytes), autoClose: false });
  for await (const one of lines) {
    const { data: erasure } = line.safeParse(jsonValueOf(one));
    if (erasure !== undefined) last.set(erasure.paymentId, erasure);
  }
  if (last.size > 0 || size === 0) return last;
  throw new PersonalDataRefused(`ERASURE_LEDGER: ${file} holds no erasure; name another file`);
};

type Log = Pick<EventStore, 'hashAt'>;

const isIn = async (log: Log, { position, hash }: Erasure): Promise<boolean> => {
  const found = await log.hashAt(position).catch(onError(RangeError, () => null));
  return found?.hash === hash;
};

/** Not the last line alone: erasures at once may be written in another order. One with 5,000 keys has 175 kB. */
const CHECKED_BYTES = 256 * 1024;

/** Throws PersonalDataRefused where it cannot be used, or the log is from before it; StoreUnavailable. */
export const openErasureLedger = async (file: string | undefined, log: Log) => {
  if (file === undefined) return undefined;
  for (const one of (await readLast(file, CHECKED_BYTES)).values())
    if (!(await isIn(log, one)))
      throw new PersonalDataRefused(
        `ERASURE_LEDGER: the log is from before the erasure of ${one.paymentId} on ${one.time}; type: payments erase --reapply ${file}`,
      );
  return (erasure: Erasure): Promise<void> => append(file, erasure);
};
/** Throws the file system's errors. */
export type NoteErasure = Awaited<ReturnType<typeof openErasureLedger>>;

/** As it was decided, whatever the rules say of the older payment. Undefined where the log does not have it whole. */
const recordAgain = async (
  store: EventStore,
  { paymentId, reason, ticket, requestedBy }: Erasure,
): Promise<Erasure | undefined> => {
  const stream = streamOf(paymentId);
  const events = await store.readStream(stream);
  const state = foldStream(events, foldState);
  if (state === undefined || state.personal.erasedAt !== undefined) return erasuresIn(events)[0];
  const id = newEventId();
  const context = { actor: 'reapply', requestId: id, correlationId: id, causationId: id };
  const data = { reason, ticket, requestedBy, keys: [...state.erasure.keys] };
  const known = { events, end: expectedAfter(events.at(-1)) };
  return erasuresIn(
    await appendControl(store, stream, known, [{ type: ERASED, data }], context),
  )[0];
};

/** Of a payment that the log has no more: noted at the log's end, so that the service may start. */
const atEndOf = async (store: EventStore, erasure: Erasure): Promise<Erasure> => {
  const position = (await store.end()) ?? '';
  const { hash = '' } = (await store.hashAt(position)) ?? {};
  return { ...erasure, position, hash };
};

/** Those that the ledger has and the log has not; how many. Throws PersonalDataRefused, and what the stores throw. */
export const reapplyErasures = async (
  file: string,
  store: EventStore,
  keys: Pick<KeyStore, 'erase'>,
): Promise<number> => {
  let erased = 0;
  for (const one of (await readLast(file, Number.POSITIVE_INFINITY)).values()) {
    if (await isIn(store, one)) continue;
    const unreadable = onError(UnreadableStream, () => undefined);
    const recorded = await recordAgain(store, one).catch(unreadable);
    await keys.erase([...one.keys, ...(recorded?.keys ?? [])]);
    // Last, because it lets the service start.
    await append(file, recorded ?? (await atEndOf(store, one)));
    erased += 1;
  }
  return erased;
};
