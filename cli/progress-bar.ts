/** Progress on stderr: a bar in a terminal, in a pipe a plain line every two seconds. */
import { SingleBar } from 'cli-progress';
import { counted, note } from './output.ts';

type Total = { total: number; estimated?: boolean };

export type Progress = {
  update(done: number, total?: Total): void;
  stop(): void;
};

const LINE_EVERY_MS = 2_000;

/** A rebuild makes indexes and compares after it has counted all. */
const rateOf = (done: number, total: number, startedAtMs: number) => {
  const seconds = Math.max((performance.now() - startedAtMs) / 1000, 0.001);
  const perSecond = done / seconds;
  const secondsLeft = done === 0 ? '?' : Math.ceil((total - done) / perSecond);
  const left = done > 0 && done >= total ? 'finishing' : `${secondsLeft} s left`;
  return { rate: counted(Math.round(perSecond)), left };
};

const aboutOf = ({ estimated }: Total): string => (estimated === true ? 'about ' : '');

const bar = (what: string, first: number, startedAtMs: number): Progress => {
  let known: Total = { total: first };
  const format = `${what} {bar} {percentage}%  {value}/{about}{total}  {rate}/s  {left}`;
  const shown = new SingleBar({ format, stream: process.stderr, barsize: 30, hideCursor: true });
  shown.start(first, 0, { ...rateOf(0, first, startedAtMs), about: '' });
  return {
    update: (done, changed = known) => {
      known = changed;
      shown.setTotal(known.total);
      const rate = rateOf(done, known.total, startedAtMs);
      shown.update(done, { ...rate, about: aboutOf(known) });
    },
    stop: () => {
      shown.update({ left: '' });
      shown.stop();
    },
  };
};

const lines = (what: string, first: number, startedAtMs: number): Progress => {
  let known: Total = { total: first };
  let doneSoFar = 0;
  const line = (isLast = false): void => {
    const { total } = known;
    const { rate, left } = rateOf(doneSoFar, total, startedAtMs);
    const percent = total === 0 ? 100 : Math.floor((doneSoFar / total) * 100);
    const done = `${counted(doneSoFar)}/${aboutOf(known)}${counted(total)}`;
    note(`${what} ${percent}%  ${done}  ${rate}/s${isLast ? '' : `  ${left}`}`);
  };
  const timer = setInterval(() => line(), LINE_EVERY_MS).unref();
  return {
    update: (done, changed = known) => {
      doneSoFar = done;
      known = changed;
    },
    stop: () => {
      clearInterval(timer);
      if (doneSoFar > 0) line(true);
    },
  };
};

export const startProgress = (what: string, total: number): Progress =>
  (process.stderr.isTTY ? bar : lines)(what, total, performance.now());
