/**
 * Progress on stderr, of work whose total is known: in a terminal a bar with rate and time left, in a
 * pipe a plain line every two seconds, which reads well in a log.
 */
import { SingleBar } from 'cli-progress';
import { note } from './output.ts';

/** A progress display that has been started. */
export type Progress = {
  /** How many are done so far; `total` when it has become known or has grown. */
  update(done: number, total?: number): void;
  /** Ends the bar or prints the last line. */
  stop(): void;
};

const LINE_EVERY_MS = 2_000;

const count = new Intl.NumberFormat('en-US');

/** The rate per second, and the seconds left, computed from the time since `startedAtMs`. */
const rateOf = (done: number, total: number, startedAtMs: number) => {
  const seconds = Math.max((performance.now() - startedAtMs) / 1000, 0.001);
  const perSecond = done / seconds;
  const left = done === 0 ? '?' : String(Math.ceil((total - done) / perSecond));
  return { rate: count.format(Math.round(perSecond)), left };
};

const bar = (what: string, first: number, startedAtMs: number): Progress => {
  let total = first;
  const format = `${what} {bar} {percentage}%  {value}/{total}  {rate}/s  {left} s left`;
  const shown = new SingleBar({ format, stream: process.stderr, barsize: 30, hideCursor: true });
  shown.start(first, 0, { rate: 0, left: '?' });
  return {
    update: (done, newTotal = total) => {
      total = newTotal;
      shown.setTotal(total);
      shown.update(done, rateOf(done, total, startedAtMs));
    },
    stop: () => shown.stop(),
  };
};

const lines = (what: string, first: number, startedAtMs: number): Progress => {
  let total = first;
  let known = 0;
  const line = (): void => {
    const { rate, left } = rateOf(known, total, startedAtMs);
    const percent = total === 0 ? 100 : Math.floor((known / total) * 100);
    const done = `${count.format(known)}/${count.format(total)}`;
    note(`${what} ${percent}%  ${done}  ${rate}/s  ${left} s left`);
  };
  const timer = setInterval(line, LINE_EVERY_MS).unref();
  return {
    update: (done, newTotal = total) => {
      known = done;
      total = newTotal;
    },
    stop: () => {
      clearInterval(timer);
      if (known > 0) line();
    },
  };
};

/** Shows the progress of `what` until `stop` is called. */
export const startProgress = (what: string, total: number): Progress =>
  (process.stderr.isTTY ? bar : lines)(what, total, performance.now());
