/**
 * Verifies a whole log page by page: the chain that its store keeps, and the sums of every payment.
 * For auditors, who verify now (audit/verification.ts), and for the run that nobody has to start.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { decode } from './codec.ts';
import type { Position, StoredForm, StoredForms } from './port.ts';
import { readPage } from './read-page.ts';
import { breakAt, storedCheck } from './verify-chain.ts';
import { sumsCheck } from './verify-sums.ts';

/** Small enough that hashing a page delays no other request. */
const PAGE = 250;

/** The first event that is not as it was written, and why. */
export type LogBreak = { position: Position; stream: string; revision: number; reason: string };

/** Writes the error line of a break: whoever verifies the whole log calls it. */
export const logBreak = (
  logger: { error(fields: object, message: string): void },
  { position, stream, revision, reason }: LogBreak,
): void =>
  logger.error(
    { position, stream, revision, reason },
    'the event log is not as it was written: change nothing, and see docs/operations.md, PaymentsLogBroken',
  );

/** What to verify. Each function may throw what the store throws. */
export type LogWalk = {
  stored: StoredForms;
  /** By which chain. */
  guarantee: StoredForms['guarantee'];
  /** The events to verify; left out: every one. */
  includes?: (form: StoredForm) => Promise<boolean>;
  /** Checks an event that fits further: the break, or undefined. */
  also?: (form: StoredForm) => LogBreak | undefined | Promise<LogBreak | undefined>;
  /** True once so many events of the log have been read that the rest is of no interest. */
  isEnough(read: number): boolean;
  signal: AbortSignal;
};

type LogPage = { page: StoredForm[]; unreadable?: LogBreak };

/** `events` were verified, `last` is the last of them; `broken` is the first that does not fit. */
export type LogWalked = { events: number; last?: StoredForm; broken?: LogBreak };

/** The break at one form, or undefined. */
const formCheck = ({ stored, guarantee, also }: LogWalk) => {
  const chain = storedCheck(stored, guarantee);
  const sums = sumsCheck(stored);
  return async (form: StoredForm): Promise<LogBreak | undefined> => {
    const reason = (await chain(form)) ?? (await sums(decode(form)));
    return reason === undefined ? also?.(form) : breakAt(form, reason);
  };
};

/**
 * Verifies page after page, and lets other work take its turn in between. Yields how many events it
 * has read, and returns undefined when `signal` is aborted. Throws StoreUnavailable.
 */
export async function* walkLog(walk: LogWalk): AsyncGenerator<number, LogWalked | undefined> {
  const { stored, includes, isEnough, signal } = walk;
  const check = formCheck(walk);
  const walked: LogWalked = { events: 0 };
  let read = 0;
  let after: Position | null = null;
  while (!signal.aborted) {
    const { page, unreadable }: LogPage = await readPage(stored, after, PAGE, walked.last);
    for (const form of page) {
      if (includes !== undefined && !(await includes(form))) continue;
      const broken = await check(form);
      if (broken !== undefined) return { ...walked, broken };
      walked.events += 1;
      walked.last = form;
    }
    if (unreadable !== undefined) return { ...walked, broken: unreadable };
    read += page.length;
    after = page.at(-1)?.position ?? after;
    yield read;
    if (page.length < PAGE || isEnough(read)) return walked;
    await turn();
  }
  return undefined;
}
