import { readlinkSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import { basename } from 'node:path';

/** Only Linux has a priority for each thread. */
export const takeLowPriority = (by: number): void => {
  try {
    const thread = Number(basename(readlinkSync('/proc/thread-self')));
    setPriority(thread, Math.min(getPriority(thread) + by, constants.priority.PRIORITY_LOW));
  } catch {}
};
