/**
 * One round of load, in a process of its own so that it can have a CPU of its own. Reads a LoadOrder
 * as JSON from stdin and writes a LoadResult as JSON to stdout.
 *
 * In the closed loop each connection sends its next request when it has the response to the last one:
 * a server that stops is sent less, and its stop is seen by few requests (coordinated omission). In
 * the open loop requests become due at random times of a fixed rate, whatever the server does, and
 * latency counts from the time at which a request was due.
 */
import { createHistogram } from 'node:perf_hooks';
import { text } from 'node:stream/consumers';
import { type Connection, connectTo, type Response, requestOf } from './load-connection.ts';

const CONNECTIONS_CLOSED = 64;
/** More, so that requests wait for the server and not for a connection. */
const CONNECTIONS_OPEN = 256;
const OVERDUE_MS_MAX = 10_000;

/** What one round sends, to where and for how long. */
export type LoadOrder = {
  url: string;
  seconds: number;
  method: 'GET' | 'POST';
  /** Requested one after the other, from the first again. */
  paths: readonly string[];
  headers: Record<string, string>;
  body?: string;
  /** Sends at this rate, in an open loop. */
  perSecond?: number;
  /** Ends after so many requests, if that is before `seconds`. */
  requestsMax?: number;
  /** Collect the payment ids of the responses. It costs a little, so not while measuring. */
  collect?: boolean;
};
/** `bad`: responses other than 2xx, and broken connections. */
export type LoadResult = {
  requests: number;
  /** How long it took. */
  ms: number;
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
  bad: number;
  /** Status and body of the first of them. */
  firstBad?: string;
  ids: string[];
  /** How busy the CPU of this process was with it, up to 1. */
  cpuShare: number;
};

type Round = {
  next(): Buffer;
  mayGoOn(): boolean;
  done(since: number, response: Response): void;
};

const closedLoop = (connection: Connection, round: Round): Promise<void> =>
  new Promise((resolve) => {
    const send = () => {
      if (connection.isClosed() || !round.mayGoOn()) return resolve();
      const since = performance.now();
      connection.send(round.next(), (response) => {
        round.done(since, response);
        send();
      });
    };
    send();
  });

const openLoop = (connections: Connection[], round: Round, perSecond: number): Promise<void> =>
  new Promise((resolve) => {
    const free = [...connections];
    const due: number[] = [];
    let inFlight = 0;
    let nextDue = performance.now();
    const tick = () => {
      const now = performance.now();
      const goesOn = round.mayGoOn();
      for (; goesOn && nextDue <= now; nextDue -= (Math.log(1 - Math.random()) * 1000) / perSecond)
        due.push(nextDue);
      for (let at = due[0]; at !== undefined; at = due[0]) {
        const connection = free.pop();
        if (connection === undefined) break;
        const since = at;
        due.shift();
        inFlight += 1;
        connection.send(round.next(), (response) => {
          round.done(since, response);
          inFlight -= 1;
          if (!connection.isClosed()) free.push(connection);
        });
      }
      const waits = inFlight > 0 || due.length > 0;
      if (!goesOn && (!waits || now > nextDue + OVERDUE_MS_MAX)) return resolve();
      setImmediate(tick);
    };
    tick();
  });

const run = async (order: LoadOrder): Promise<LoadResult> => {
  const { seconds, paths, perSecond, requestsMax = Number.POSITIVE_INFINITY, collect } = order;
  const requests = paths.map((path) => requestOf(order, path));
  const ids: string[] = [];
  const micros = createHistogram({ lowest: 1, highest: 600_000_000 });
  let sent = 0;
  let bad = 0;
  let firstBad: string | undefined;
  const count = perSecond === undefined ? CONNECTIONS_CLOSED : CONNECTIONS_OPEN;
  const connections = await Promise.all(
    Array.from({ length: count }, () => connectTo(new URL(order.url))),
  );
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  const endsAt = startedAt + seconds * 1000;
  const round: Round = {
    next: () => requests[sent++ % requests.length] as Buffer,
    mayGoOn: () => sent < requestsMax && performance.now() < endsAt,
    done: (since, { status, body }) => {
      micros.record(Math.max(Math.round((performance.now() - since) * 1000), 1));
      if (status < 200 || status > 299) {
        bad += 1;
        firstBad ??= `${status} ${body().slice(0, 200)}`;
      }
      const [, id] = (collect && /"paymentId":"([^"]+)"/.exec(body())) || [];
      if (id !== undefined) ids.push(id);
    },
  };
  await (perSecond === undefined
    ? Promise.all(connections.map((connection) => closedLoop(connection, round)))
    : openLoop(connections, round, perSecond));
  const ms = performance.now() - startedAt;
  const cpu = process.cpuUsage(cpuBefore);
  for (const connection of connections) connection.close();
  return {
    requests: micros.count,
    ms,
    perSecond: (micros.count * 1000) / ms,
    p50Ms: micros.percentile(50) / 1000,
    p99Ms: micros.percentile(99) / 1000,
    bad,
    ...(firstBad !== undefined && { firstBad }),
    ids,
    cpuShare: (cpu.user + cpu.system) / 1000 / ms,
  };
};

process.stdout.write(JSON.stringify(await run(JSON.parse(await text(process.stdin)))));
