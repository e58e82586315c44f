/**
 * Where the relay is, in one document: it changes as a whole or not at all, and only for a writer
 * that saw the last change. It is not one of the read models: wiping or rebuilding them publishes
 * nothing again.
 */
import { z } from 'zod';

/**
 * One text under a fixed name, with a version that every change raises: all that an engine has to
 * offer. Version 0 stands for a document that is not there yet.
 */
export type KeyDocument = {
  /** The last text saved, durable. Throws when the engine is out of reach. */
  load(): Promise<{ version: number; text: string } | undefined>;
  /**
   * Replaces the text and raises the version by one. False, and nothing changed, when the stored
   * version is not `expectedVersion`. Throws when it is not known whether it was saved.
   */
  save(text: string, expectedVersion: number): Promise<boolean>;
  close(): Promise<void>;
};

const count = z.int().min(0);
const partitions = z.int().min(1);

/** A payment parked at an event that cannot be sent: its revisions `from` to `to` are left out. */
const parkedPayment = z.object({ from: count, to: count, reason: z.string(), since: z.string() });

const relayCheckpoint = z.object({
  /** Everything up to here is sent, but for the parked payments. */
  position: z.string().nullable(),
  /** Of the event there: tells whether the log is still the one that was sent. */
  hash: z.string().nullable().default(null),
  /** As the topics had them at the first start; a change stops the relay. */
  partitions: z.object({ events: partitions, state: partitions }),
  /** How many messages each partition of the events topic has: the next one's number. */
  counters: z.array(count),
  /** The parked payments, by paymentId. */
  parked: z.record(z.string(), parkedPayment),
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

/** Reads a stored checkpoint. Throws Error when it is none: then nothing may be guessed. */
export const parseCheckpoint = (text: string): RelayCheckpoint => {
  try {
    const checkpoint = relayCheckpoint.parse(JSON.parse(text));
    if (checkpoint.counters.length === checkpoint.partitions.events) return checkpoint;
  } catch {
    // Said below, without the parser's words.
  }
  throw new Error('the checkpoint of the event feed is damaged; put back its last good copy');
};
