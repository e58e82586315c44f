/**
 * Keeps the keys of boxes (box.ts) apart from the log, so that erasing a key erases what its box holds in every
 * copy of the log. Every driver keeps these promises (test/personal-data/describe-key-store.ts):
 * - A key is durable before it is given, and is given once, over all processes and after any crash.
 * - An erased key stays erased: no later write brings it back, and `read` tells it from one never stored.
 * - The checkpoint is in the same place as the keys, so that a restored copy brings the one of its own time.
 * Each call but `take` throws its engine's error where it is not certain that all was done; it may be repeated.
 */
import type { KeyObject } from 'node:crypto';

/** For one box, and never made again. `id` ends with the hash of `key`. */
export type PersonalKey = { id: string; key: KeyObject };

/** `unreadable`: its row was changed, or is wrapped by a master key that is not given. */
export type FoundKey = KeyObject | 'erased' | 'missing' | 'unreadable';

/** `last` is where the next page begins, undefined at the end. */
export type Rewrapped = { last?: string | undefined; rewrapped: number; unreadable: number };

/** What a driver keeps. */
export type StoredKeys = {
  /** New keys, wrapped by the current master key. */
  make(count: number): Promise<PersonalKey[]>;
  /** Has each of `ids`. */
  read(ids: readonly string[]): Promise<ReadonlyMap<string, FoundKey>>;
  /** For good, also a key that is not stored. In SQLite no file holds it afterwards. */
  erase(ids: readonly string[]): Promise<void>;
  /** Wraps the page of keys behind the id `after` by the current master key, in the order of ids; no box changes. */
  rewrap(after: string): Promise<Rewrapped>;
  /** The ids of the master keys of the first and the last key in that order, of those not erased. */
  ends(): Promise<string[]>;
  /** The text last saved: how far the log's erasures were carried out here. */
  checkpoint(): Promise<string | undefined>;
  /** The last writer wins: to erase from an earlier place again is harmless. */
  saveCheckpoint(text: string): Promise<void>;
  close(): Promise<void>;
};

export type KeyStore = Omit<StoredKeys, 'make' | 'ends'> & {
  /**
   * A key that was made ahead. Waits at most `waitMs` where there is none, then throws KeysUnavailable. A key
   * that is not used is left over for good.
   */
  take(waitMs: number): Promise<PersonalKey>;
};

/** No key in time, or none can be made. `message` is one line and holds no key. */
export class KeysUnavailable extends Error {
  readonly code = 'PERSONAL_KEYS_UNAVAILABLE';
  override name = 'KeysUnavailable';
}
