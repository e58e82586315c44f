/**
 * Keeps the keys of boxes (box.ts) apart from the log, so that erasing a key erases what its box holds in every
 * copy of the log. Every driver keeps these promises (test/personal-data/describe-key-store.ts):
 * - A key is durable before `take` gives it, and is given once, over all processes and after any crash.
 * - An erased key stays erased: no later write brings it back, and `read` tells it from one never stored.
 * - The checkpoint is in the same place as the keys, so that a restored copy brings the one of its own time.
 */
import type { KeyObject } from 'node:crypto';

/** For one box, and never made again. `id` is the hash of `key`. */
export type PersonalKey = { id: string; key: KeyObject };

/** `unreadable`: its row was changed, or is wrapped by a master key that is not given. */
export type FoundKey = KeyObject | 'erased' | 'missing' | 'unreadable';

export type KeyStore = {
  /**
   * The next of the keys that were made ahead. Waits at most `waitMs` where there is none, then throws
   * KeysUnavailable. A key that is not used is left over for good.
   */
  take(waitMs: number): Promise<PersonalKey>;
  /** Has each of `ids`. Throws KeysUnavailable where the engine is out of reach. */
  read(ids: readonly string[]): Promise<ReadonlyMap<string, FoundKey>>;
  /**
   * Erases each key for good, also one that is not stored, and resolves once no file of the store holds it.
   * May be repeated. Throws KeysUnavailable where it is not known whether all are erased.
   */
  erase(ids: readonly string[]): Promise<void>;
  /** The text last saved: how far the log's erasures were carried out here. */
  checkpoint(): Promise<string | undefined>;
  /** The last writer wins: to erase from an earlier place again is harmless. */
  saveCheckpoint(text: string): Promise<void>;
  close(): Promise<void>;
};

/** Out of reach, or no key in time. `message` is one line and holds no key. */
export class KeysUnavailable extends Error {
  readonly code = 'PERSONAL_KEYS_UNAVAILABLE';
  override name = 'KeysUnavailable';
}
