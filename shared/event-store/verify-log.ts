/**
 * Verifies a whole log page by page: the chain that its store keeps, and the sums of every payment.
 * For auditors, who verify now (audit/verification.ts), and for the run that nobody has to start.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { paymentOf } from '../payment/payment-events.ts';
import { jsonFieldsOf } from '../runtime/json-fields.ts';
import type { Logger } from '../runtime/logger.ts';
import { pauseAt } from '../runtime/slices.ts';
import { type BreaksMet, breakOfForm, judgeBreaks, type LogBreak, meetBreaks } from './breaks.ts';
import { logHashes } from './chain.ts';
import { unreadableAt } from './codec.ts';
import { type EventTotal, totalUpTo } from './log-progress.ts';
import type { LogReader, Position, StoredForm, StoredForms } from './port.ts';
import { readPage } from './read-page.ts';
import { type LogScan, scanLog } from './scan-log.ts';
import { storedCheck } from './verify-chain.ts';
import { type SealsAgainst, type SealsFound, sealsCheck } from './verify-seals.ts';
import { sumsCheck, sumsEventOf } from './verify-sums.ts';

const PAGE = 250;
/** After so many pages it says how far it is: each time costs the reader a message. */
const PROGRESS_PAGES = 16;

/** Writes the error line of a break: whoever verifies the whole log calls it. */
export const logBreak = (
  logger: Pick<Logger, 'error'>,
  { position, stream, revision, reason }: LogBreak,
): void =>
  logger.error(
    { position, stream, revision, reason },
    'the event log is not as it was written: change nothing, and see docs/runbook.md, PaymentsLogBroken',
  );

/** What to verify. Each function may throw what the store throws. */
export type LogWalk = {
  stored: StoredForms;
  /** By which chain. */
  guarantee: StoredForms['guarantee'];
  /** The events to verify; left out: every one. */
  includes?: (form: StoredForm) => Promise<boolean>;
  /** Why an event does not fit for another reason; called with every event in its order. */
  also?: (form: StoredForm) => string | undefined;
  /** The breaks that show at the end of the whole log alone; not called where it was not read to there. */
  atEnd?: () => LogBreak[];
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

/** `events` fit, `last` is the last of them; `broken` is the first break that nobody has acknowledged. */
export type LogWalked = {
  events: number;
  last?: StoredForm;
  broken?: LogBreak;
  breaks: BreaksMet;
};

/** What was gone through, with its first break. */
const ended = (walked: Omit<LogWalked, 'broken'>): LogWalked => {
  const [broken] = judgeBreaks(walked.breaks).named;
  return broken === undefined ? walked : { ...walked, broken };
};

/**
 * The reason for a break at one form, or undefined: by the chain first, for it says whether the sums are to
 * be believed. After a break the sums of its payment are not known.
 */
const formCheck = ({ stored, guarantee }: LogWalk) => {
  const chain = storedCheck(stored, guarantee);
  const sums = sumsCheck(stored);
  return (form: StoredForm): string | undefined | Promise<string | undefined> => {
    const named = jsonFieldsOf(form.text);
    const sumsReason = (found: string | undefined) => {
      if (paymentOf(form.stream) === undefined) return found;
      if (found === undefined) return sums(sumsEventOf(form, named));
      sums(unreadableAt(form, found));
      return found;
    };
    const reason = chain(form, named);
    return reason instanceof Promise ? reason.then(sumsReason) : sumsReason(reason);
  };
};

/**
 * Verifies page after page up to the end, past every break, and lets other work take its turn in
 * between. Yields how far it is after the first page, some times a second and at the end, and returns
 * undefined when `signal` is aborted. Throws StoreUnavailable.
 */
export async function* walkLog(walk: LogWalk): AsyncGenerator<LogProgress, LogWalked | undefined> {
  const { stored, includes, also, atEnd, end, signal } = walk;
  const check = formCheck(walk);
  const linked = logHashes();
  const { met: breaks, note, pass } = meetBreaks();
  const walked: LogWalked = { events: 0, breaks };
  let read = 0;
  let after: Position | null = null;
  for (let pages = 0; !signal.aborted; pages += 1) {
    if (end === null || after === end) {
      for (const broken of atEnd?.() ?? []) note(broken);
      return ended(walked);
    }
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
      const inChain = checked instanceof Promise ? await checked : checked;
      // The seals need every event's place, also that of one that does not fit.
      const beside = also?.(form);
      const reason = inChain ?? beside;
      if (reason === undefined) {
        walked.events += 1;
        walked.last = form;
        pass(form);
        continue;
      }
      note(breakOfForm(form, reason));
    }
    if (unreadable !== undefined) note(unreadable);
    if (page.length === 0 && unreadable === undefined) note(endIsGone(end));
    if (page.length === 0 || unreadable !== undefined) return ended(walked);
    read += page.length;
    after = page.at(-1)?.position ?? after;
    if (after === end || pages % PROGRESS_PAGES === 0)
      yield { read, ...totalUpTo(end, { read, at: after }) };
    await turn();
  }
  return undefined;
}

/** What was verified, and what its seals came to. */
export type SealedWalked = LogWalked & { seals: SealsFound };

/**
 * `walkLog` over a log whose seals are checked on the way. `also` comes after them, and so does `atEnd` after
 * a seal that should have come and did not.
 */
export async function* walkSealed(
  walk: LogWalk,
  against: SealsAgainst,
): AsyncGenerator<LogProgress, SealedWalked | undefined> {
  const seals = sealsCheck(against);
  const walked = yield* walkLog({
    ...walk,
    also: (form) => {
      const inSeals = seals.reasonFor(form);
      const reason = walk.also?.(form);
      return inSeals ?? reason;
    },
    atEnd: () => [seals.missing() ?? [], walk.atEnd?.() ?? []].flat(),
  });
  return walked && { ...walked, seals: seals.found() };
}

type VerifyArgs = { end: Position | null; seals: SealsAgainst };

export const verify: LogScan<VerifyArgs, LogProgress, SealedWalked | undefined> = (
  { stored },
  { end, seals },
  { signal },
) => walkSealed({ stored, guarantee: stored.guarantee, end, signal }, seals);

/** Verifies everything up to `end`, by the chain that the store keeps, as a scan. Throws StoreUnavailable. */
export const verifyWhole = (
  store: LogReader,
  args: VerifyArgs,
  signal?: AbortSignal,
): AsyncGenerator<LogProgress, SealedWalked | undefined> =>
  scanLog(store, { module: import.meta.url, job: 'verify', args, signal });
