/** The checkpoint of the relay. After a wipe or a rebuild of the read models no message is sent again. */
import { z } from 'zod';
import type { LogEvent } from '../shared/event-store/port.ts';
import type { KeyDocument } from '../shared/read-models/key-document.ts';
import { PARTITIONS_DEFAULT, type Partitions } from './port.ts';

const { seals: SEALS_DEFAULT } = PARTITIONS_DEFAULT;
const count = z.int().min(0);
const partitions = z.int().min(1);

/** A payment parked at an event that cannot be sent: its revisions `from` to `to` are left out. */
const parkedPayment = z.object({ from: count, to: count, reason: z.string(), since: z.string() });

const relayCheckpoint = z.object({
  /** Everything up to this position is sent, except the parked payments' events. */
  position: z.string().nullable(),
  /** The hash of the log at `position`: shows whether the log is still the one that was sent. */
  hash: z.string().nullable().default(null),
  /** The counts that the topics had at the first start; a change halts the relay. */
  partitions: z.object({ events: partitions, state: partitions, seals: partitions }),
  /** How many messages each partition of the events topic has: the next one's number. */
  counters: z.array(count),
  parked: z.record(z.string(), parkedPayment),
  /** The parked payment of which messages may be sent and not acknowledged (ADR-0046). */
  sending: z.string().optional(),
});
export type RelayCheckpoint = z.infer<typeof relayCheckpoint>;

export const checkpointAtStart = (counts: Partitions): RelayCheckpoint => ({
  position: null,
  hash: null,
  partitions: counts,
  counters: Array.from({ length: counts.events }, () => 0),
  parked: {},
});

/** `seals`: the count of that topic now. Throws Error when damaged: a guess could send or skip messages. */
export const parseCheckpoint = (text: string, seals = SEALS_DEFAULT): RelayCheckpoint => {
  try {
    const stored = JSON.parse(text);
    // The earlier version that wrote no count of the seals topic sent nothing to it.
    stored.partitions.seals ??= seals;
    const checkpoint = relayCheckpoint.parse(stored);
    if (checkpoint.counters.length === checkpoint.partitions.events) return checkpoint;
  } catch {}
  throw new Error('the checkpoint of the relay is damaged; put back its last good copy');
};

/** Their notes are 4 MB then (ADR-0046). So many come from a wrong version of the service. */
export const PARKED_MAX = 20_000;

const REASON_CHARS_MAX = 100;

export const noteParked = (
  { parked }: RelayCheckpoint,
  paymentId: string,
  { revision }: Pick<LogEvent, 'revision'>,
  reason: string,
): void => {
  const parking = parked[paymentId];
  if (parking === undefined && Object.keys(parked).length >= PARKED_MAX) {
    throw new Error(
      `${PARKED_MAX} payments are parked, and no more can be noted: is this an earlier version of the service than the one that wrote the events? The last reason: ${reason}`,
    );
  }
  const since = new Date().toISOString();
  const first = { from: revision, reason: reason.slice(0, REASON_CHARS_MAX), since };
  parked[paymentId] = { ...(parking ?? first), to: revision };
};

/** With the last left-out event the payment is no longer parked. */
export const noteSent = (
  checkpoint: RelayCheckpoint,
  paymentId: string,
  { revision }: Pick<LogEvent, 'revision'>,
): void => {
  const { parked } = checkpoint;
  const parking = parked[paymentId];
  if (parking !== undefined && revision !== parking.to) {
    parked[paymentId] = { ...parking, from: revision + 1 };
    return;
  }
  delete parked[paymentId];
  delete checkpoint.sending;
};

/** Puts the payment behind the others: those are tried before it. */
export const noteStillParked = ({ parked }: RelayCheckpoint, paymentId: string, reason: string) => {
  const parking = parked[paymentId];
  if (parking === undefined) return;
  delete parked[paymentId];
  parked[paymentId] = { ...parking, reason: reason.slice(0, REASON_CHARS_MAX) };
};

export const openOwnCheckpoint = (document: KeyDocument) => {
  let version = 0;
  let own: RelayCheckpoint | undefined;
  let isTaken = false;
  let seen: RelayCheckpoint | undefined;

  const taken = (): RelayCheckpoint | undefined => (isTaken ? own : undefined);
  const known = (): RelayCheckpoint | undefined => taken() ?? seen;

  const save = async (next: RelayCheckpoint): Promise<void> => {
    if (!(await document.save(JSON.stringify(next), version)))
      throw new Error('another relay has moved the checkpoint of the relay');
    version += 1;
    own = next;
  };

  return {
    /** Taken or saved here, else the stored one as last seen. */
    known,
    /** Undefined while another relay may save. */
    taken,
    /** Also while a step of before `leave` ends. Throws Error before the first `take`. */
    value: (): RelayCheckpoint => {
      if (own === undefined) throw new Error('the relay has not started');
      return own;
    },
    /** The stored one. Throws Error where it is damaged, and what the document throws. */
    read: async (): Promise<RelayCheckpoint | undefined> => {
      const stored = await document.load();
      seen = stored && parseCheckpoint(stored.text);
      return seen;
    },
    /** Throws Error, and nothing changed, where another relay has saved since. */
    save,
    /** Saves the stored one once, or the first: then every older relay fails to save. Throws as both. */
    take: async (counts: Partitions): Promise<RelayCheckpoint> => {
      const stored = await document.load();
      version = stored?.version ?? 0;
      const found = stored && parseCheckpoint(stored.text, counts.seals);
      const first = found ?? checkpointAtStart(counts);
      await save(first);
      isTaken = true;
      return first;
    },
    leave: (): void => {
      seen = known();
      isTaken = false;
    },
  };
};
export type OwnCheckpoint = ReturnType<typeof openOwnCheckpoint>;
