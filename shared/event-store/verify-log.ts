/** Verifies a whole log page by page: its chain, the sums of every payment, and its seals. */
import { setImmediate as turn } from 'node:timers/promises';
import { jsonFieldsOf } from '../runtime/json.ts';
import type { Logger } from '../runtime/log.ts';
import { pauseAt } from '../runtime/scheduling.ts';
import {
  type BreaksMet,
  breakOfForm,
  judgeBreaks,
  type LogBreak,
  meetBreaks,
  unreadableReason,
} from './breaks.ts';
import { logHashes } from './chain.ts';
import { decodeParsed, unreadableAt } from './codec.ts';
import type { LogReader, Position, StoredForm, StoredForms } from './port.ts';
import { type EventTotal, type LogScan, readPage, scanLog, totalUpTo } from './scan-log.ts';
import { storedCheck } from './verify-chain.ts';
import { type SealsAgainst, type SealsFound, sealsCheck } from './verify-seals.ts';
import { sumsCheck } from './verify-sums.ts';

const PAGE = 250;
const PROGRESS_PAGES = 16;

export const logBreak = (
  logger: Pick<Logger, 'error'>,
  { position, stream, revision, reason }: LogBreak,
): void =>
  logger.error(
    { position, stream, revision, reason },
    'the event log is not as it was written: change nothing, and see docs/runbook.md, LOG_BROKEN',
  );

type LogWalk = {
  stored: StoredForms;
  guarantee: StoredForms['guarantee'];
  seals?: SealsAgainst;
  includes?: (form: StoredForm) => Promise<boolean>;
  also?: (form: StoredForm) => string | undefined;
  atEnd?: () => LogBreak | undefined;
  end: Position | null;
  signal: AbortSignal;
};

const endIsGone = (position: Position): LogBreak => ({
  position,
  stream: '',
  revision: 0,
  reason: 'the log ended here when this began, and its last events are gone',
});

export type LogProgress = EventTotal & { read: number };

/** `broken`: the first break that is not acknowledged. */
export type LogWalked = {
  events: number;
  last?: StoredForm;
  broken?: LogBreak;
  breaks: BreaksMet;
  seals: SealsFound;
};

type Fit = { reason?: string | undefined; unreadable?: string | undefined };

/** By the chain first, which says whether the sums are to be believed. */
const formCheck = ({ stored, guarantee }: LogWalk) => {
  const chain = storedCheck(stored, guarantee);
  const sums = sumsCheck(stored);
  return async (form: StoredForm): Promise<Fit> => {
    const named = jsonFieldsOf(form.text);
    const inChain = await chain(form, named);
    const event = inChain === undefined ? decodeParsed(form, named) : unreadableAt(form, inChain);
    const inSums = await sums(event);
    return {
      reason: inChain ?? inSums,
      ...('unreadable' in event && { unreadable: event.unreadable }),
    };
  };
};

/** Goes on past every break; undefined when `signal` is aborted. Throws StoreUnavailable. */
export async function* walkLog(walk: LogWalk): AsyncGenerator<LogProgress, LogWalked | undefined> {
  const { stored, includes, also, atEnd, end, signal } = walk;
  const check = formCheck(walk);
  const seals = sealsCheck(walk.seals ?? {});
  const linked = logHashes();
  const { met: breaks, note, pass } = meetBreaks();
  let [events, read] = [0, 0];
  let last: StoredForm | undefined;
  let after: Position | null = null;

  const walked = (): LogWalked => {
    const [broken] = judgeBreaks(breaks).named;
    return {
      events,
      breaks,
      seals: seals.found(),
      ...(last && { last }),
      ...(broken && { broken }),
    };
  };

  const verifyForm = async (form: StoredForm): Promise<void> => {
    const { reason: inChain, unreadable } = await check(form);
    // Seals and kept heads need every event's place, also of one that does not fit.
    const inSeals = seals.reasonFor(form);
    const beside = also?.(form);
    const changed = inChain ?? inSeals ?? beside;
    const reason = changed ?? (unreadable && unreadableReason(unreadable));
    if (reason !== undefined) return note(breakOfForm(form, reason));
    events += 1;
    last = form;
    pass(form);
  };

  for (let pages = 0; !signal.aborted; pages += 1) {
    if (end === null || after === end) {
      for (const broken of [seals.missing(), atEnd?.()]) if (broken !== undefined) note(broken);
      return walked();
    }
    const { page, unreadable } = await readPage(stored, signal, after, PAGE, end, last);
    for (const [index, form] of page.map(linked).entries()) {
      const pause = pauseAt(index);
      if (pause !== undefined) await pause;
      if (includes === undefined || (await includes(form))) await verifyForm(form);
    }
    if (unreadable !== undefined) note(unreadable);
    if (page.length === 0 && unreadable === undefined) note(endIsGone(end));
    if (page.length === 0 || unreadable !== undefined) return walked();
    read += page.length;
    after = page.at(-1)?.position ?? after;
    if (after === end || pages % PROGRESS_PAGES === 0)
      yield { read, ...totalUpTo(end, { read, at: after }) };
    await turn();
  }
  return undefined;
}

type VerifyArgs = { end: Position | null; seals: SealsAgainst };

export const verify: LogScan<VerifyArgs, LogProgress, LogWalked | undefined> = (
  { stored },
  args,
  { signal },
) => walkLog({ stored, guarantee: stored.guarantee, ...args, signal });

export const verifyWhole = (
  store: LogReader,
  args: VerifyArgs,
  signal?: AbortSignal,
): AsyncGenerator<LogProgress, LogWalked | undefined> =>
  scanLog(store, { module: import.meta.url, job: 'verify', args, signal });
