/** Long work lets other work run: a payment can have thousands of events (gaps §18). */
import { readlinkSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import { basename } from 'node:path';
import { setImmediate as immediate } from 'node:timers/promises';

const SLICE = 100;

/** Before the item of that index; undefined within a slice. */
export const pauseAt = (index: number): Promise<void> | undefined =>
  index > 0 && index % SLICE === 0 ? immediate() : undefined;

export const mapInSlices = async <T, U>(
  items: readonly T[],
  make: (item: T) => U,
): Promise<U[]> => {
  const made: U[] = [];
  for (const [index, item] of items.entries()) {
    const pause = pauseAt(index);
    if (pause !== undefined) await pause;
    made.push(make(item));
  }
  return made;
};

const AT_ONCE = 4;

/** In order, a few at a time, so that merchants are served meanwhile. */
export const fewAtOnce = async <T>(
  ids: readonly string[],
  look: (id: string) => Promise<T>,
): Promise<T[]> => {
  const results: T[] = [];
  for (let at = 0; at < ids.length; at += AT_ONCE)
    results.push(...(await Promise.all(ids.slice(at, at + AT_ONCE).map(look))));
  return results;
};

/** Only Linux has a priority for each thread. */
export const takeLowPriority = (by: number): void => {
  try {
    const thread = Number(basename(readlinkSync('/proc/thread-self')));
    setPriority(thread, Math.min(getPriority(thread) + by, constants.priority.PRIORITY_LOW));
  } catch {}
};
