/**
 * One merchant that opens many connections and does with them what it likes, and another merchant that is
 * served by the same service meanwhile.
 */
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import payment from '../../examples/payment.json' with { type: 'json' };
import { PAYMENTS } from './in-process.ts';
import type { Service } from './service.ts';
import { until } from './until.ts';

const GREEDY = 'm_greedy';

/** Connections that each send the same bytes, and are opened again when the service has closed them. */
export type Crowd = { closed(): number; leave(): void };

/** Who does not read learns only by sending that its connection is closed; HTTP ignores an empty line there. */
const PROBE = { text: '\r\n', everyMs: 2_000 };

type Client = {
  connections: number;
  sends: string;
  /** Called with each new connection, which is paused. */
  reads?: (socket: Socket) => void;
  /** Finds out by sending that a connection is closed. */
  probes?: true;
};

export const openCrowd = ({ port }: { port: number }, client: Client): Crowd => {
  const open = new Set<Socket>();
  let closed = 0;
  let isThere = true;
  const probing = setInterval(() => {
    if (client.probes) for (const socket of open) socket.write(PROBE.text);
  }, PROBE.everyMs);
  let begun = 0;
  const begin = (): void => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(client.sends);
      // One after the other, as from a client that is no faster than the service.
      if (begun < client.connections) begin();
    });
    begun += 1;
    open.add(socket);
    socket.pause().on('error', () => undefined);
    client.reads?.(socket);
    socket.once('close', () => {
      open.delete(socket);
      closed += 1;
      if (isThere) begin();
    });
  };
  begin();
  return {
    closed: () => closed,
    leave: () => {
      isThere = false;
      clearInterval(probing);
      for (const socket of open) socket.destroy();
    },
  };
};

const requestOf = async (service: Service, line: string, more = ''): Promise<string> =>
  `${line} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${await service.token(GREEDY)}\r\n${more}\r\n`;

/** The start of a create whose body never comes. */
export const halfACreate = async (service: Service): Promise<string> =>
  `${await requestOf(service, `POST ${PAYMENTS}`, 'content-length: 900\r\n')}{`;

/** So many requests for the longest list, one behind the other. */
export const lists = async (service: Service, count: number): Promise<string> =>
  (await requestOf(service, `GET ${PAYMENTS}?limit=100`)).repeat(count);

/** Payments of the greedy merchant with 180 items each: 100 of them are a list of 5 MB. */
export const makeLargePayments = async (service: Service, count: number): Promise<void> => {
  const item = { id: 'x'.repeat(40), name: 'x'.repeat(150), goodsType: 'PHYSICAL' };
  const productItems = Array.from({ length: 180 }, () => ({ ...item, quantity: 1, unitPrice: 1 }));
  const headers = { authorization: `Bearer ${await service.token(GREEDY)}` };
  for (let n = 0; n < count; n += 1) {
    const { status } = await service.post(PAYMENTS, { ...payment, productItems }, headers);
    if (status !== 200) throw new Error(`a large payment got ${status}`);
  }
};

/** What the other merchant got. */
export type Served = { requests: number; refused: number; p99Ms: number };

const CLIENTS = 4;

/**
 * The other merchant makes payments and reads each one for so long, from a few clients, each of which asks
 * for `/health/live` between the two.
 */
export const servedFor = async (service: Service, seconds: number): Promise<Served> => {
  const authorization = `Bearer ${await service.token()}`;
  const times: number[] = [];
  let refused = 0;
  const ask = async (path: string, init: RequestInit = {}): Promise<{ paymentId?: string }> => {
    const begun = performance.now();
    const response = await fetch(`${service.url}${path}`, {
      ...init,
      headers: { authorization },
      signal: AbortSignal.timeout(30_000),
    });
    const body = (await response.json()) as { paymentId?: string };
    times.push(performance.now() - begun);
    if (response.status !== 200) refused += 1;
    return body;
  };
  const untilMs = performance.now() + seconds * 1000;
  const client = async (): Promise<void> => {
    while (performance.now() < untilMs) {
      const { paymentId } = await ask(PAYMENTS, { method: 'POST', body: JSON.stringify(payment) });
      await ask('/health/live');
      await ask(`${PAYMENTS}/${paymentId}`);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  times.sort((a, b) => a - b);
  const p99Ms = times[Math.floor(times.length * 0.99)] ?? Number.NaN;
  return { requests: times.length, refused, p99Ms };
};

/** Megabytes of a process as Linux counts them: now, and at the most so far. */
export const memoryOf = ({ pid }: { pid: number }): { now: number; most: number } => {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const megabytes = (name: string): number =>
    (Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(status)?.[1]) * 1024) / 1e6;
  return { now: megabytes('VmRSS'), most: megabytes('VmHWM') };
};

/** Resolves once the memory is below this, while the other merchant goes on. */
export const untilMemoryIsBelow = (service: Service, megabytes: number): Promise<void> =>
  until(
    `the process has less than ${megabytes} MB`,
    async () => {
      await servedFor(service, 0.2);
      return memoryOf(service).now < megabytes;
    },
    120_000,
  );
