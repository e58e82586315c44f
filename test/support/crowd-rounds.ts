/** What one merchant's crowd of connections may cost the others, measured on a process of its own. */
import type { Socket } from 'node:net';
import { expect } from '@jest/globals';
import {
  type Crowd,
  halfACreate,
  lists,
  makeLargePayments,
  memoryOf,
  openCrowd,
  type Served,
  servedFor,
  untilMemoryIsBelow,
} from './crowd.ts';
import { type Service, startService } from './service.ts';

const P99_MS_MAX = 250;
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
  expect(p99Ms).toBeLessThan(Math.max(P99_MS_MAX, TIMES_ALONE_MAX * alone.p99Ms));
};

/** 2,300 creates of one merchant whose bodies never come, for so long. */
export const withstandHalfSent = async (seconds: number): Promise<void> => {
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

export type Unread = { connections: number; listsOfEach: number; seconds: number; trickles?: true };

/** Reads 64 KiB of a connection now and then. */
const TRICKLE = { bytes: 65_536, everyMs: 10_000 };

const trickle = (socket: Socket): void => {
  const reading = setInterval(() => socket.read(TRICKLE.bytes), TRICKLE.everyMs);
  socket.once('close', () => clearInterval(reading));
};

/** Connections of one merchant that ask for its lists of 5 MB and read nothing of them, or hardly anything. */
export const withstandUnread = async ({ trickles, ...round }: Unread): Promise<void> => {
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
