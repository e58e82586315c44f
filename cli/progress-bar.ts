/**
 * Progress of work whose end is known, on stderr: a bar with rate and time left in a terminal, a
 * plain line every two seconds in a pipe, so that a log of it can be read.
 */
import { SingleBar } from 'cli-progress';
import { note } from './output.ts';

export type Progress = {
  /** How many are done so far; `total` where it has become known, or has grown, meanwhile. */
  update(done: number, total?: number): void;
  /** Ends the bar or prints the last line. */
  stop(): void;
};

const LINE_EVERY_MS = 2_000;

const count = new Intl.NumberFormat('en-US');

/** Per second, and the seconds left, from how many were done since `startedAtMs`. */
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

/** Shows how far `what` is, until it is stopped. */
export const startProgress = (what: string, total: number): Progress =>
  (process.stderr.isTTY ? bar : lines)(what, total, performance.now());
