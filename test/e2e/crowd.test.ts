/** What one merchant's crowd of connections may cost the others, measured on a process of its own. */
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { describe, expect, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import { testOfLongRun, timesOf } from '../support/long-run-share.ts';
import { PAYMENTS } from '../support/service-in-process.ts';
import { type Service, startService } from '../support/service-processes.ts';
import { CROWDED_MS_MAX, HANGS_MS } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';

const GREEDY = 'm_greedy';

/** Connections that each send the same bytes, and are opened again when the service has closed them. */
type Crowd = { closed(): number; leave(): void };

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

const openCrowd = ({ port }: { port: number }, client: Client): Crowd => {
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
const halfACreate = async (service: Service): Promise<string> =>
  `${await requestOf(service, `POST ${PAYMENTS}`, 'content-length: 900\r\n')}{`;

/** So many requests for the longest list, one behind the other. */
const lists = async (service: Service, count: number): Promise<string> =>
  (await requestOf(service, `GET ${PAYMENTS}?limit=100`)).repeat(count);

/** Payments of the greedy merchant with 180 items each: 100 of them are a list of 5 MB. */
const makeLargePayments = async (service: Service, count: number): Promise<void> => {
  const item = { id: 'x'.repeat(40), name: 'x'.repeat(150), goodsType: 'PHYSICAL' };
  const productItems = Array.from({ length: 180 }, () => ({ ...item, quantity: 1, unitPrice: 1 }));
  const headers = { authorization: `Bearer ${await service.token(GREEDY)}` };
  for (let n = 0; n < count; n += 1) {
    const { status } = await service.post(PAYMENTS, { ...payment, productItems }, headers);
    if (status !== 200) throw new Error(`a large payment got ${status}`);
  }
};

/** What the other merchant got. */
type Served = { requests: number; refused: number; p99Ms: number };

const CLIENTS = 4;

/**
 * The other merchant makes payments and reads each one for so long, from a few clients, each of which asks
 * for `/health/live` between the two.
 */
const servedFor = async (service: Service, seconds: number): Promise<Served> => {
  const authorization = `Bearer ${await service.token()}`;
  const times: number[] = [];
  let refused = 0;
  const ask = async (path: string, init: RequestInit = {}): Promise<{ paymentId?: string }> => {
    const begun = performance.now();
    const response = await fetch(`${service.url}${path}`, {
      ...init,
      headers: { authorization },
      signal: AbortSignal.timeout(HANGS_MS),
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
const memoryOf = ({ pid }: { pid: number }): { now: number; most: number } => {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const megabytes = (name: string): number =>
    (Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(status)?.[1]) * 1024) / 1e6;
  return { now: megabytes('VmRSS'), most: megabytes('VmHWM') };
};

/** Resolves once the memory is below this, while the other merchant goes on. */
const untilMemoryIsBelow = (service: Service, megabytes: number): Promise<void> =>
  until(`the process has less than ${megabytes} MB`, async () => {
    await servedFor(service, 0.2);
    return memoryOf(service).now < megabytes;
  });

/** Where every core is busy elsewhere: in comparison with the same service without the crowd. */
const TIMES_ALONE_MAX = 10;
const MB_MAX = 700;
/** The service itself has more than 400 after so many payments of the other merchant. */
const MB_AFTER_MAX = 550;

const tell = (what: string, service: Service, served: Served, alone: Served, crowd: Crowd) => {
  const { now, most } = memoryOf(service);
  const { requests, refused } = served;
  const [p99, p99Alone] = [served, alone].map(({ p99Ms }) => Math.round(p99Ms));
  process.stderr.write(
    `crowd: ${what}: ${requests} requests of the other merchant, ${refused} refused, p99 ${p99} ms, alone ${p99Alone} ms; ${Math.round(now)} MB, ${Math.round(most)} at the most; ${crowd.closed()} connections closed\n`,
  );
};

const expectServed = ({ refused, p99Ms }: Served, alone: Served): void => {
  expect(refused).toBe(0);
  // A second of requests has no percentile that says anything.
  const limitMs = Math.max(CROWDED_MS_MAX, TIMES_ALONE_MAX * alone.p99Ms);
  expect(p99Ms).toBeLessThan(timesOf(limitMs, Number.POSITIVE_INFINITY));
};

/** 2,300 creates of one merchant whose bodies never come, for so long. */
const withstandHalfSent = async (seconds: number): Promise<void> => {
  await using service = await startService();
  const alone = await servedFor(service, 1);
  const sends = await halfACreate(service);
  const reads = (socket: Socket) => void socket.resume();
  const crowd = openCrowd(service, { connections: 2_300, sends, reads });
  try {
    const served = await servedFor(service, seconds);
    tell('half-sent creates', service, served, alone, crowd);
    expectServed(served, alone);
    expect(memoryOf(service).most).toBeLessThan(MB_MAX);
  } finally {
    crowd.leave();
  }
};

type Unread = { connections: number; listsOfEach: number; seconds: number; trickles?: true };

/** Reads 64 KiB of a connection now and then. */
const TRICKLE = { bytes: 65_536, everyMs: 10_000 };

const trickle = (socket: Socket): void => {
  const reading = setInterval(() => socket.read(TRICKLE.bytes), TRICKLE.everyMs);
  socket.once('close', () => clearInterval(reading));
};

/** Connections of one merchant that ask for its lists of 5 MB and read nothing of them, or hardly anything. */
const withstandUnread = async ({ trickles, ...round }: Unread): Promise<void> => {
  const { connections, listsOfEach, seconds } = round;
  await using service = await startService();
  await makeLargePayments(service, 100);
  const alone = await servedFor(service, 1);
  const sends = await lists(service, listsOfEach);
  const reads = trickles && { reads: trickle };
  const crowd = openCrowd(service, { connections, sends, probes: true, ...reads });
  try {
    const served = await servedFor(service, seconds);
    const how = trickles ? 'trickling' : 'unread';
    const what = `${connections} connections, ${listsOfEach} lists of each, ${how}`;
    tell(what, service, served, alone, crowd);
    expectServed(served, alone);
    expect(memoryOf(service).most).toBeLessThan(MB_MAX);
  } finally {
    crowd.leave();
  }
  await untilMemoryIsBelow(service, MB_AFTER_MAX);
};

describe('A5: a crowd of connections of one merchant leaves the others their service', () => {
  test('2,300 creates whose bodies never come: no other merchant is refused or waits', async () => {
    await withstandHalfSent(timesOf(30, 1));
  });

  testOfLongRun.each([
    { connections: 400, listsOfEach: 1, seconds: 35 },
    { connections: 400, listsOfEach: 20, seconds: 35 },
    { connections: 100, listsOfEach: 20, seconds: 50, trickles: true as const },
  ])(
    '$connections connections with $listsOfEach requests each for lists of 5 MB, which read nothing, or 64 KiB each 10 s',
    (round) => withstandUnread(round),
  );
});
