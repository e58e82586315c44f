/**
 * gaps §27, A5: the table of docs/invariants.md, row by row. A merchant asks for all it can get and gets its
 * most; another one finds a place, and so does a token of all merchants.
 */
import { afterEach, expect, test } from '@jest/globals';
import { createRetrySchedules } from '../../command-api/recovery/retry-schedule.ts';
import type { Provider } from '../../providers/port.ts';
import { resilient } from '../../providers/resilience.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { buildApp } from '../../shared/http/server/app.ts';
import { inTurn } from '../../shared/http/server/shares.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { createLogFeed, feedPage } from '../../webhooks/delivery/log-feed.ts';
import { createPlaces, type Standing } from '../../webhooks/delivery/send-item.ts';
import { manualClock } from '../support/manual-clock.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import { textOf } from '../support/project-files.ts';
import { authorize } from '../support/provider-operations.ts';
import { openInProcess, signToken } from '../support/service-in-process.ts';
import { silentLog } from '../support/silent-log.ts';
import { until } from '../support/until.ts';

/** What a merchant asks for begins, or waits, or is refused; what has begun never ends. */
type Shared = {
  ask(merchantId: string): unknown;
  begun(): number;
  /** A token of all merchants is for it as well. */
  isForAll?: boolean;
  /** Once what was asked for before has begun, or waits. */
  untilDone?(): Promise<unknown>;
};

/** Counts what hangs, until it is released. */
const hanging = () => {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => undefined);
  let begun = 0;
  return {
    hang: (): Promise<never> => {
      begun += 1;
      return promise;
    },
    begun: () => begun,
    release: () => reject(new Error('released')),
  };
};

const { signal } = new AbortController();

const providerCalls = (): Shared => {
  const { hang, begun } = hanging();
  const provider = resilient({ execute: hang } as unknown as Provider, manualClock());
  return {
    ask: (merchantId) => provider.execute({ ...authorize(), merchantId }, async () => undefined),
    begun,
  };
};

const recoveryOf = () => {
  const { hang, begun } = hanging();
  let sent = 0;
  const schedules = createRetrySchedules({
    ...{ ...manualClock(), delaysMs: [], looksMs: () => [0], attempt: hang, unknown: {} },
    startTimer: (work) => {
      work();
      return () => undefined;
    },
    onFailed: () => undefined,
  });
  const idOf = () => {
    sent += 1;
    return `pay_${sent}`;
  };
  return { schedules, begun, idOf };
};
const questions = (): Shared => {
  const { schedules, begun, idOf } = recoveryOf();
  return { ask: (merchantId) => schedules.beginAnew(idOf(), merchantId), begun };
};
const looks = (): Shared => {
  const { schedules, begun, idOf } = recoveryOf();
  return { ask: (merchantId) => schedules.beginAnew(idOf(), merchantId, 1), begun };
};
const known = (): Shared => {
  const { schedules, idOf } = recoveryOf();
  return {
    ask: (merchantId) => schedules.beginAnew(idOf(), merchantId),
    begun: () => schedules.all.size,
  };
};

const webhookRequests = (standing: Standing) => (): Shared => {
  const { hang, begun } = hanging();
  const places = createPlaces();
  return { ask: (merchantId) => places.with(standing, merchantId, signal, hang), begun };
};

const logPages = (): Shared => {
  const { hang, begun } = hanging();
  const feed = createLogFeed({ ...memoryEventStore(), readAll: hang });
  return { ask: (merchantId) => feedPage(feed, merchantId, null, null, signal), begun };
};

const MB = 1024 * 1024;
const sharesOf = (name: 'places' | 'unread', unit: number) => (): Shared => {
  const app = buildApp({ log: silentLog, metrics: createMetrics(), maxInFlight: 2048 });
  const shares = app.lifecycle[name];
  return {
    ask: (merchantId) => {
      if (!shares.isFull(merchantId)) shares.take(merchantId, unit);
    },
    begun: () => shares.taken() / unit,
  };
};

const endless = <Y, R>(): AsyncGenerator<Y, R> => ({
  next: () => new Promise(() => undefined),
  return: async (value) => ({ done: true, value: await value }),
  throw: (error) => Promise.reject(error),
  [Symbol.asyncIterator]() {
    return this;
  },
  [Symbol.asyncDispose]: async () => undefined,
});

const LISTED_FOR_A_PERSON = 1_000;
const withHanging = async () => {
  const { hang, begun, release } = hanging();
  const service = await openInProcess({}, silentLog, {
    store: (own: EventStore): EventStore => ({
      ...own,
      readStream: (stream) => (/^webhooks-[0-9a-f]/.test(stream) ? hang() : own.readStream(stream)),
      stored: {
        ...own.stored,
        scan: <Y, R>() => ({ ...endless<Y, R>(), next: hang }),
      },
    }),
    readModels: (own: ReadModels): ReadModels => ({
      ...own,
      search: hang,
      parked: (limit, ...after) =>
        limit === LISTED_FOR_A_PERSON ? hang() : own.parked(limit, ...after),
    }),
  });
  await service.create();
  return { service, url: await service.listen(), begun, release };
};

type Road = { path: string; accept?: string; method?: string; body?: object };
const SCOPE = 'payments:read webhooks:write audit:read ops:admin';

/** The requests of a merchant by one of the roads to what is shared; `begun` counts them. */
const byRoad =
  ({ path, accept = 'application/json', method = 'GET', body }: Road, isCounted = false) =>
  async (): Promise<Shared> => {
    const { service, url, begun, release } = await withHanging();
    const leaving = new AbortController();
    opened.push(async () => {
      leaving.abort();
      release();
      await service[Symbol.asyncDispose]();
    });
    let [sent, responded, accepted] = [0, 0, 0];
    const ask = async (merchantId: string): Promise<void> => {
      const token = await signToken({ merchant_id: merchantId, sub: 'ann', scope: SCOPE });
      const { status } = await fetch(`${url}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, accept },
        body: body === undefined ? null : JSON.stringify(body),
        signal: leaving.signal,
      });
      responded += 1;
      if (status === 200) accepted += 1;
    };
    return {
      ask: (merchantId) => {
        sent += 1;
        ask(merchantId).catch(() => undefined);
      },
      begun: isCounted ? () => accepted : begun,
      isForAll: !path.startsWith('/api/'),
      untilDone: async () => {
        const arrived = () => responded + service.inFlight() + begun();
        await until('all have arrived', () => arrived() >= sent);
        for (let n = 0; n < 3; n += 1) await fetch(`${url}/health/live`);
      },
    };
  };
const STREAM = 'text/event-stream';
const ENDPOINTS = '/api/v1/webhook-endpoints';
const posted = (path: string, body?: object, method = 'POST') =>
  byRoad({ path: `${ENDPOINTS}${path}`, method, ...(body && { body }) });

const opened: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0)) await close();
});

type Open = () => Shared | Promise<Shared>;
const SHARED: Record<string, Record<string, Open>> = {
  'requests (`MAX_IN_FLIGHT`)': { 'any of them': sharesOf('places', 1) },
  'responses that are not read yet': { 'MB of them': sharesOf('unread', MB) },
  'operations at the provider': { 'an operation': providerCalls },
  "recovery's questions to the provider": { 'an unresolved operation': questions },
  'looks at payments that wait for their shopper': { 'a payment that waits': looks },
  'payments that recovery knows': { 'an unresolved payment': known },
  'webhook requests': { 'a message': webhookRequests('well') },
  'of these to endpoints that were sent nothing of late': {
    'a message': webhookRequests('silent'),
  },
  'of these to endpoints that did not respond': { 'a message': webhookRequests('doubtful') },
  'pages of the log for webhooks': { 'an endpoint that is behind': logPages },
  'streams of a kind': {
    'the events, live': byRoad({ path: '/audit/v1/events/stream?from=now', accept: STREAM }, true),
    'the messages, live': byRoad({ path: '/api/v1/webhook-events/stream', accept: STREAM }, true),
  },
  'reads of the log from an earlier place: pages, exports, streams until they have caught up': {
    'a page': byRoad({ path: '/audit/v1/events' }),
    'an export': byRoad({ path: '/audit/v1/events', accept: 'application/x-ndjson' }),
    'the events': byRoad({ path: '/audit/v1/events/stream?from=start', accept: STREAM }),
    'the messages': byRoad({ path: '/api/v1/webhook-events/stream?from=start', accept: STREAM }),
  },
  'verifications of the log': {
    'a response': byRoad({ path: '/audit/v1/verify' }),
    'a stream': byRoad({ path: '/audit/v1/verify', accept: STREAM }),
  },
  'lists and searches': {
    'a list': byRoad({ path: '/api/v1/payments' }),
    'a search': byRoad({ path: '/audit/v1/payments?q=x' }),
  },
  'commands to webhook endpoints': {
    'a registration': posted('', { url: 'https://shop.example/' }),
    'a change': posted('/we_1', {}, 'PATCH'),
    'a rotation': posted('/we_1/rotate-secret'),
    'a resend': posted('/we_1/resend', { since: '2000-01-01T00:00:00Z' }),
    'a test': posted('/we_1/test'),
    'a deletion': posted('/we_1', undefined, 'DELETE'),
  },
  'what needs a person, acknowledged or listed': {
    'a list': byRoad({ path: '/ops/v1/attention' }),
    'an acknowledgement': byRoad({
      path: '/ops/v1/attention/some/acknowledge',
      method: 'POST',
      body: { note: 'seen' },
    }),
  },
};

const numberIn = (cell = ''): number => Number.parseInt(cell.replaceAll(',', ''), 10);
const ROWS = [
  ...textOf('docs/invariants.md').matchAll(
    /^\| ([^|]+) \| ([0-9,]+)(?: MB)? \| ([0-9,]+)(?: MB)? \| /gm,
  ),
].map(([, name = '', places, ofOne]) => ({
  name,
  places: numberIn(places),
  ofOne: numberIn(ofOne),
}));

test('the table has a row for all that is shared', () => {
  expect(ROWS.map(({ name }) => name)).toEqual(Object.keys(SHARED));
});

const roads = ROWS.flatMap((row) =>
  Object.entries(SHARED[row.name] ?? {}).map(([road, open]) => ({ ...row, road, open })),
);

test.each(roads)('$name, by $road: $ofOne of $places', async ({ places, ofOne, open }) => {
  const { ask, begun, isForAll = true, untilDone = () => Promise.resolve() } = await open();
  for (let n = 0; n < Math.min(places, ofOne + 8); n += 1) ask('m_first');
  await until('one merchant has its most', () => begun() >= ofOne);
  await untilDone();
  expect(begun()).toBe(ofOne);
  ask('m_other');
  await until('another one has begun', () => begun() > ofOne);
  expect(begun()).toBe(ofOne + 1);
  if (!isForAll) return;
  ask('*');
  await until('a token of all merchants has begun', () => begun() === ofOne + 2);
});

test('a request whose turn does not come in time is 503, and the next one has its turn', async () => {
  const app = buildApp({ log: silentLog, metrics: createMetrics(), maxInFlight: 10 });
  app.lifecycle.turnMs = 20;
  let first = Promise.withResolvers<string>();
  app.get('/', async (_request, reply) => {
    const text = await inTurn('searches', reply, () => first.promise);
    return text === undefined ? reply : reply.send(text);
  });
  const ask = async () => app.inject({ method: 'GET', url: '/' });
  const waiting = ask();
  const late = await ask();
  expect([late.statusCode, late.headers['retry-after'], late.json()]).toMatchObject([
    503,
    '1',
    { error: 'SERVICE_UNAVAILABLE', details: ['the turn of this request did not come in time'] },
  ]);
  first.resolve('found');
  expect((await waiting).body).toBe('found');
  first = Promise.withResolvers();
  first.resolve('again');
  expect((await ask()).body).toBe('again');
});
