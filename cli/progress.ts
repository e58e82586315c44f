/**
 * How far a long piece of work is, on stderr: a bar with rate and time left in a terminal, one plain
 * line now and then in a pipe.
 */
import { SingleBar } from 'cli-progress';

export type Progress = {
  /** `total` where it has become known, or has grown, meanwhile. */
  update(done: number, total?: number): void;
  /** Leaves the terminal's line; what is printed next begins one of its own. */
  stop(): void;
};

const TICK_MS = 1000;
const FORMAT = '{name} [{bar}] {value}/{total}  {rate}/s  {eta_formatted} left';

const count = new Intl.NumberFormat('en-US');

const rateOf = (done: number, startedAtMs: number): number =>
  Math.round(done / Math.max(0.001, (performance.now() - startedAtMs) / 1000));

const bar = (name: string, total: number, stream: NodeJS.WriteStream): Progress => {
  const startedAtMs = performance.now();
  const single = new SingleBar({ format: FORMAT, stream, clearOnComplete: true, fps: 10 });
  single.start(total, 0, { name, rate: 0 });
  return {
    update: (done, newTotal) => {
      if (newTotal !== undefined) single.setTotal(newTotal);
      single.update(done, { rate: rateOf(done, startedAtMs) });
    },
    stop: () => single.stop(),
  };
};

const lines = (name: string, first: number, stream: NodeJS.WriteStream): Progress => {
  const startedAtMs = performance.now();
  let saidAtMs = startedAtMs;
  let total = first;
  return {
    update: (done, newTotal) => {
      total = newTotal ?? total;
      if (performance.now() - saidAtMs < TICK_MS) return;
      saidAtMs = performance.now();
      const rate = count.format(rateOf(done, startedAtMs));
      stream.write(`${name} ${count.format(done)} of ${count.format(total)}  ${rate}/s\n`);
    },
    stop: () => undefined,
  };
};

/** Begins to show it; `name` is what is being done, `total` how much there is of it. */
export const startProgress = (
  name: string,
  total: number,
  stream: NodeJS.WriteStream = process.stderr,
): Progress => (stream.isTTY ? bar(name, total, stream) : lines(name, total, stream));
