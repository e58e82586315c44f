/**
 * Verifies a whole log page by page: the chain that its store keeps, and the sums of every payment.
 * For auditors, who verify now (audit/verification.ts), and for the run that nobody has to start.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { logHashes } from './chain.ts';
import { decode } from './codec.ts';
import { type EventTotal, totalUpTo } from './log-progress.ts';
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
  /** Where the log ended when this was asked for (`end` of the store): so far it is verified. */
  end: Position | null;
  signal: AbortSignal;
};

type LogPage = { page: StoredForm[]; unreadable?: LogBreak };

/** The break where the events up to the end are not all there any more. */
const endIsGone = (position: Position): LogBreak => ({
  position,
  stream: '',
  revision: 0,
  reason: 'the log ended here when this began, and its last events are gone',
});

/** Events that were read so far, and how many there are in all. */
export type LogProgress = EventTotal & { read: number };

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
 * Verifies page after page up to the end, and lets other work take its turn in between. Yields how far
 * it is, and returns undefined when `signal` is aborted. Throws StoreUnavailable.
 */
export async function* walkLog(walk: LogWalk): AsyncGenerator<LogProgress, LogWalked | undefined> {
  const { stored, includes, end, signal } = walk;
  const check = formCheck(walk);
  const linked = logHashes();
  const walked: LogWalked = { events: 0 };
  let read = 0;
  let after: Position | null = null;
  while (!signal.aborted) {
    if (end === null || after === end) return walked;
    const { page, unreadable }: LogPage = await readPage(stored, after, PAGE, end, walked.last);
    for (const form of page.map(linked)) {
      if (includes !== undefined && !(await includes(form))) continue;
      const broken = await check(form);
      if (broken !== undefined) return { ...walked, broken };
      walked.events += 1;
      walked.last = form;
    }
    if (unreadable !== undefined) return { ...walked, broken: unreadable };
    // seeded bug: verified-to-the-end
    if (page.length === 0) return { ...walked, broken: endIsGone(end) };
    read += page.length;
    after = page.at(-1)?.position ?? after;
    yield { read, ...totalUpTo(end, { read, at: after }) };
    await turn();
  }
  return undefined;
}
