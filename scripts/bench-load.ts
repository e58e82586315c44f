/**
 * One round of load, in a process of its own so that it can have a CPU of its own. Reads a LoadOrder
 * as JSON from stdin and writes a LoadResult as JSON to stdout.
 */
import { text } from 'node:stream/consumers';
import autocannon from 'autocannon';

const CONNECTIONS = 64;
/** Prepared per connection, so that building requests costs nothing during the round. */
const PATHS_PER_CONNECTION = 200;

/** What one round sends, to where and for how long. */
export type LoadOrder = {
  url: string;
  seconds: number;
  method: 'GET' | 'POST';
  /** Each connection requests its own random choice of these. */
  paths: string[];
  headers: Record<string, string>;
  body?: string;
  /** Collect the payment ids of the responses. It costs a little, so not while measuring. */
  collect?: boolean;
};
/** `bad`: responses other than 2xx, errors and timeouts. */
export type LoadResult = {
  requests: number;
  perSecond: number;
  p99Ms: number;
  bad: number;
  ids: string[];
};

const anyOf = (paths: string[]): string => paths[Math.floor(Math.random() * paths.length)] ?? '/';

const run = async (order: LoadOrder): Promise<LoadResult> => {
  const { url, seconds, method, paths, headers, body, collect = false } = order;
  const ids: string[] = [];
  const onResponse = (_status: number, response: string) => {
    const [, id] = /"paymentId":"([^"]+)"/.exec(response) ?? [];
    if (id !== undefined) ids.push(id);
  };
  const prepared = () => ({
    method,
    path: anyOf(paths),
    headers,
    ...(body === undefined ? {} : { body }),
    ...(collect ? { onResponse } : {}),
  });
  const result = await autocannon({
    url,
    connections: CONNECTIONS,
    duration: seconds,
    setupClient: (client) =>
      client.setRequests(Array.from({ length: PATHS_PER_CONNECTION }, prepared)),
  });
  const bad = result.non2xx + result.errors + result.timeouts;
  const { total: requests, average: perSecond } = result.requests;
  return { requests, perSecond, p99Ms: result.latency.p99, bad, ids };
};

process.stdout.write(JSON.stringify(await run(JSON.parse(await text(process.stdin)))));
