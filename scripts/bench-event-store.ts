/**
 * `npm run bench -- --eventstoredb`: the service on EventStoreDB, at EVENTSTOREDB_URL or else on the
 * stand-in of the tests; and what a create and a GET cost there: CPU of the service's process, and
 * calls to the store, which only the stand-in counts.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** Starts a command of which the standard output is read. */
type Start = (command: string[]) => ChildProcess;

/** The event store of a run. `calls` resolves with the number of calls so far, where it is known. */
export type BenchEventStore = { url: string; calls(): Promise<number | undefined>; stop(): void };

/** The server that EVENTSTOREDB_URL names, or a stand-in in a process of its own. */
export const benchEventStore = async (start: Start): Promise<BenchEventStore> => {
  const url = process.env.EVENTSTOREDB_URL?.trim();
  if (url) return { url, calls: async () => undefined, stop: () => undefined };
  const child = start([process.execPath, 'test/support/eventstoredb-stand-in-main.ts']);
  if (child.stdout === null) throw new Error('the stand-in has no output to read');
  const lines = createInterface({ input: child.stdout });
  const nextLine = async (): Promise<string> => String((await once(lines, 'line'))[0]);
  return {
    url: await nextLine(),
    calls: async () => {
      const line = nextLine();
      child.kill('SIGUSR2');
      const { append, read, subscribe } = JSON.parse(await line);
      return append + read + subscribe;
    },
    stop: () => void child.kill('SIGTERM'),
  };
};

/** What a process and its store did for some requests. */
type Cost = { requests: number; cpuSeconds: number; calls: number | undefined };

const cpuSecondsOf = async (metricsUrl: string): Promise<number> => {
  const text = await (await fetch(metricsUrl)).text();
  return Number(/^process_cpu_seconds_total (\S+)/m.exec(text)?.[1]);
};

/** Measures what rounds of requests cost; `lineOf` says it for one kind of them. */
export const measureCosts = (store: BenchEventStore, metricsUrl: string) => {
  const costs: Record<string, Cost> = {};
  const now = async () => ({ cpu: await cpuSecondsOf(metricsUrl), calls: await store.calls() });
  return {
    async around<T extends { requests: number }>(name: string, round: () => Promise<T>) {
      const before = await now();
      const result = await round();
      const after = await now();
      const sum = costs[name] ?? { requests: 0, cpuSeconds: 0, calls: 0 };
      costs[name] = {
        requests: sum.requests + result.requests,
        cpuSeconds: sum.cpuSeconds + after.cpu - before.cpu,
        calls: after.calls && (sum.calls ?? 0) + after.calls - (before.calls ?? 0),
      };
      return result;
    },
    lineOf(name: string): string {
      const { requests, cpuSeconds, calls } = costs[name] as Cost;
      const each = calls === undefined ? 'not counted' : (calls / requests).toFixed(2);
      const cpuUs = Math.round((cpuSeconds * 1e6) / requests);
      return `${name} ${cpuUs} us of CPU, calls to the event store ${each}`;
    },
  };
};
