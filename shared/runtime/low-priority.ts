/** The priority of one thread of this process, as the operating system has it. */
import { readlinkSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import { basename } from 'node:path';

/**
 * Lets the thread that calls this have the CPU when the other threads of the process do not want it,
 * and a small part of it when they do. Linux alone has a priority for each thread; elsewhere, and where
 * /proc is not there, nothing changes.
 */
export const takeLowPriority = (by: number): void => {
  try {
    const thread = Number(basename(readlinkSync('/proc/thread-self')));
    setPriority(thread, Math.min(getPriority(thread) + by, constants.priority.PRIORITY_LOW));
  } catch {
    // It shares the CPU with the others then, as any thread does.
  }
};
