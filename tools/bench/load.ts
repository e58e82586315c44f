/**
 * The load, by autocannon, in a process that servers do not share. It takes a LoadOrder from its parent,
 * sends requests on 64 connections, each after the response to the last one, and reports a LoadResult.
 */
import { readFileSync } from 'node:fs';
import { createHistogram } from 'node:perf_hooks';
import autocannon, { type Client } from 'autocannon';

/** A create, or a GET of one of the payments whose ids were kept. */
export type Kind = 'create' | 'GET';

/** `amount` requests to the server `name`; `keepsIds` keeps the ids of its creates for its GETs. */
export type LoadOrder = {
  name: string;
  url: string;
  token: string;
  kind: Kind;
  amount: number;
  keepsIds: boolean;
};

/** `bad` counts responses other than 2xx and broken connections. */
export type LoadResult = Record<'requests' | 'perSecond' | 'p99Ms' | 'bad', number>;

const CONNECTIONS = 64;
const TIMEOUT_SECONDS = 60;
/** Different payments that one connection reads in a round. */
const READS = 300;
const ID = /pay_[\w-]{26,}/;
const PATH = '/api/v1/payments';
const BODY = readFileSync(new URL('../../examples/payment.json', import.meta.url), 'utf8');

const idsOf = new Map<string, string[]>();

const anyOf = (ids: readonly string[]) => {
  return { path: `${PATH}/${ids[Math.floor(Math.random() * ids.length)]}` };
};

const send = async (order: LoadOrder): Promise<LoadResult> => {
  const { name, url, token, kind, amount, keepsIds } = order;
  const ids = idsOf.get(name) ?? [];
  idsOf.set(name, ids);
  // autocannon's histogram counts whole milliseconds.
  const micros = createHistogram({ lowest: 1, highest: 600_000_000 });
  let lastAt = 0;
  const setupClient = (client: Client): void => {
    if (kind === 'GET' && ids.length > 0)
      client.setRequests(Array.from({ length: READS }, () => anyOf(ids)));
    if (keepsIds) client.on('body', (body) => ids.push(...(ID.exec(body.toString()) ?? [])));
    client.on('response', (_status, _bytes, ms) => {
      micros.record(Math.max(Math.round(ms * 1000), 1));
      lastAt = performance.now();
    });
  };
  const sending = autocannon({
    url: url + (kind === 'create' ? PATH : `${PATH}/none`),
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(kind === 'create' && { method: 'POST', body: BODY }),
    connections: CONNECTIONS,
    timeout: TIMEOUT_SECONDS,
    sampleInt: 20,
    setupClient,
    amount,
  });
  const startedAt = performance.now();
  const { non2xx, errors, statusCodeStats } = await sending;
  const bad = non2xx + errors;
  if (bad > 0)
    process.stderr.write(
      `bench: ${name}, ${kind}: ${errors} errors, ${JSON.stringify(statusCodeStats)}\n`,
    );
  const perSecond = (micros.count * 1000) / (lastAt - startedAt);
  return { requests: micros.count, perSecond, p99Ms: micros.percentile(99) / 1000, bad };
};

process.on('message', async (order: LoadOrder) => process.send?.(await send(order)));
