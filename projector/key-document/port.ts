/**
 * Small records outside the log, such as the relay's checkpoint: one text under a fixed name, with a
 * version that every change raises. It changes as a whole, and only for a writer that saw the last change.
 * Version 0 is a document that does not exist yet.
 */
export type KeyDocument = {
  /** The last text saved, durable. Throws when the engine is out of reach. */
  load(): Promise<{ version: number; text: string } | undefined>;
  /** False, and nothing changed, for another version. Throws when it is not known whether it was saved. */
  save(text: string, expectedVersion: number): Promise<boolean>;
  close(): Promise<void>;
};
