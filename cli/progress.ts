/** Progress on stderr: one line that changes in a terminal, in a pipe a line every two seconds. */
import { counted, note } from './output.ts';

type Total = { total: number; estimated?: boolean };

const LINE_EVERY_MS = 2_000;
const CHANGE_EVERY_MS = 100;
const CLEAR_LINE = '\r\u001b[K';

/** A rebuild makes indexes and compares after it has counted all. */
const leftOf = (done: number, total: number, seconds: number): string => {
  if (done === 0) return '? s left';
  return done >= total ? 'finishing' : `${Math.ceil(((total - done) / done) * seconds)} s left`;
};

export const startProgress = (what: string, first: number) => {
  const startedAtMs = performance.now();
  const isTerminal = process.stderr.isTTY === true;
  let known: Total = { total: first };
  let done = 0;
  const show = (isLast = false): void => {
    const { total, estimated = false } = known;
    const seconds = Math.max((performance.now() - startedAtMs) / 1000, 0.001);
    const percent = total === 0 ? 100 : Math.floor((done / total) * 100);
    const far = `${counted(done)}/${estimated ? 'about ' : ''}${counted(total)}`;
    const line = `${what} ${percent}%  ${far}  ${counted(Math.round(done / seconds))}/s`;
    const text = isLast ? line : `${line}  ${leftOf(done, total, seconds)}`;
    if (isTerminal && !isLast) process.stderr.write(CLEAR_LINE + text);
    else note(text);
  };
  const timer = setInterval(show, isTerminal ? CHANGE_EVERY_MS : LINE_EVERY_MS).unref();
  return {
    update: (now: number, total = known): void => {
      done = now;
      known = total;
    },
    stop: (): void => {
      clearInterval(timer);
      if (isTerminal) process.stderr.write(CLEAR_LINE);
      if (done > 0) show(true);
    },
  };
};
