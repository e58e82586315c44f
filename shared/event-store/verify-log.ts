/**
 * Verifies a whole log page by page: the chain that its store keeps, and the sums of every payment.
 * For auditors, who verify now (audit/verification.ts), and for the run that nobody has to start.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { paymentOf } from '../payment/payment-events.ts';
import type { Logger } from '../runtime/logger.ts';
import { pauseAt } from '../runtime/slices.ts';
import { logHashes } from './chain.ts';
import { fieldsOfText } from './fields-of-text.ts';
import { type EventTotal, totalUpTo } from './log-progress.ts';
import type { Position, StoredForm, StoredForms } from './port.ts';
import { readPage } from './read-page.ts';
import { type Share, takes, WHOLE } from './shares.ts';
import { breakAt, storedCheck } from './verify-chain.ts';
import { sumsCheck, sumsEventOf } from './verify-sums.ts';

const PAGE = 250;
/**
 * After so many pages it says how far it is: each time costs the reader a message. By their number, so
 * that the readers of all shares say it at the same places.
 */
const PROGRESS_PAGES = 16;
/** Of a form that is only passed. */
const NOT_READ = {};

/** The first event that is not as it was written, and why. */
export type LogBreak = { position: Position; stream: string; revision: number; reason: string };

/** Writes the error line of a break: whoever verifies the whole log calls it. */
export const logBreak = (
  logger: Pick<Logger, 'error'>,
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
  /** Whose events are checked; left out: everybody's. The others are passed, and counted. */
  share?: Share | undefined;
  /** Checks an event that fits further: the break, or undefined. */
  also?: (form: StoredForm) => LogBreak | undefined;
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

/** The reason for a break at one form, or undefined: by the chain first, for it says whether the sums are to be believed. */
const formCheck = ({ stored, guarantee, share = WHOLE }: LogWalk) => {
  const isOwn = takes(share);
  const chain = storedCheck(stored, guarantee, share);
  const sums = sumsCheck(stored);
  return (form: StoredForm): string | undefined | Promise<string | undefined> => {
    if (!isOwn(form.stream)) return chain(form, NOT_READ);
    const named = fieldsOfText(form.text);
    const sumsReason = () =>
      paymentOf(form.stream) === undefined ? undefined : sums(sumsEventOf(form, named));
    const reason = chain(form, named);
    if (reason instanceof Promise) return reason.then((found) => found ?? sumsReason());
    return reason ?? sumsReason();
  };
};

/**
 * Verifies page after page up to the end, and lets other work take its turn in between. Yields how far
 * it is after the first page, some times a second and at the end, and returns undefined when `signal` is
 * aborted. Throws StoreUnavailable.
 */
export async function* walkLog(walk: LogWalk): AsyncGenerator<LogProgress, LogWalked | undefined> {
  const { stored, includes, also, end, signal } = walk;
  const check = formCheck(walk);
  const linked = logHashes();
  const walked: LogWalked = { events: 0 };
  let read = 0;
  let after: Position | null = null;
  for (let pages = 0; !signal.aborted; pages += 1) {
    if (end === null || after === end) return walked;
    const { page, unreadable }: LogPage = await readPage(
      stored,
      signal,
      after,
      PAGE,
      end,
      walked.last,
    );
    for (const [index, form] of page.map(linked).entries()) {
      const pause = pauseAt(index);
      if (pause !== undefined) await pause;
      if (includes !== undefined && !(await includes(form))) continue;
      const checked = check(form);
      // Most need no read: a promise for each would be a tenth of the whole.
      const reason = checked instanceof Promise ? await checked : checked;
      const broken = reason === undefined ? also?.(form) : breakAt(form, reason);
      if (broken !== undefined) return { ...walked, broken };
      walked.events += 1;
      walked.last = form;
    }
    if (unreadable !== undefined) return { ...walked, broken: unreadable };
    // seeded bug: verified-to-the-end
    if (page.length === 0) return { ...walked, broken: endIsGone(end) };
    read += page.length;
    after = page.at(-1)?.position ?? after;
    if (after === end || pages % PROGRESS_PAGES === 0)
      yield { read, ...totalUpTo(end, { read, at: after }) };
    await turn();
  }
  return undefined;
}
