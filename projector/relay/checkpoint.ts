/**
 * The checkpoint of the relay, in one key document. It is not one of the read models: after a wipe or a
 * rebuild of them, no message is sent again.
 */
import { z } from 'zod';
import { PARTITIONS_DEFAULT } from '../event-feed/port.ts';

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
  /** The parked payments, by paymentId. */
  parked: z.record(z.string(), parkedPayment),
  /** The parked payment of which messages may be sent and not acknowledged (ADR-0046). */
  sending: z.string().optional(),
});
export type RelayCheckpoint = z.infer<typeof relayCheckpoint>;

/** The relay at the start of the log. */
export const checkpointAtStart = (counts: RelayCheckpoint['partitions']): RelayCheckpoint => ({
  position: null,
  hash: null,
  partitions: counts,
  counters: Array.from({ length: counts.events }, () => 0),
  parked: {},
});

/** A checkpoint of an earlier version has no count of the seals topic, of which nothing is sent yet. */
const withSeals = (stored: RelayCheckpoint, seals: number): RelayCheckpoint => ({
  ...stored,
  partitions: { ...stored.partitions, seals: stored.partitions.seals ?? seals },
});

/**
 * Reads a stored checkpoint. `seals` is the count that the seals topic has now. Throws Error when the
 * checkpoint is damaged: a guess could send or skip messages.
 */
export const parseCheckpoint = (
  text: string,
  seals = PARTITIONS_DEFAULT.seals,
): RelayCheckpoint => {
  try {
    const checkpoint = relayCheckpoint.parse(withSeals(JSON.parse(text), seals));
    if (checkpoint.counters.length === checkpoint.partitions.events) return checkpoint;
  } catch {
    // The error below is for an operator: the parser's message would not help.
  }
  throw new Error('the checkpoint of the relay is damaged; put back its last good copy');
};
