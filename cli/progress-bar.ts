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

export const startProgress = (what: string, first: number): Progress => {
  const startedAtMs = performance.now();
  let known: Total = { total: first };
  let doneSoFar = 0;
  const shown = () => {
    const about = known.estimated === true ? 'about ' : '';
    return { ...rateOf(doneSoFar, known.total, startedAtMs), about };
  };
  const line = (isLast = false): void => {
    const { total } = known;
    const { rate, left, about } = shown();
    const percent = total === 0 ? 100 : Math.floor((doneSoFar / total) * 100);
    const done = `${counted(doneSoFar)}/${about}${counted(total)}`;
    note(`${what} ${percent}%  ${done}  ${rate}/s${isLast ? '' : `  ${left}`}`);
  };
  const format = `${what} {bar} {percentage}%  {value}/{about}{total}  {rate}/s  {left}`;
  const options = { format, stream: process.stderr, barsize: 30, hideCursor: true };
  const bar = process.stderr.isTTY ? new SingleBar(options) : undefined;
  bar?.start(first, 0, shown());
  const timer = bar === undefined ? setInterval(() => line(), LINE_EVERY_MS).unref() : undefined;
  return {
    update: (done, changed = known) => {
      doneSoFar = done;
      known = changed;
      bar?.setTotal(known.total);
      bar?.update(done, shown());
    },
    stop: () => {
      bar?.update({ left: '' });
      bar?.stop();
      clearInterval(timer);
      if (bar === undefined && doneSoFar > 0) line(true);
    },
  };
};
