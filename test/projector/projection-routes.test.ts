/** The operator's routes over the read models as a whole (ADR-0042), and over parked payments (P5). */
import { afterEach, describe, expect, test } from '@jest/globals';
import { type Projector, startProjector } from '../../projector/compose.ts';
import { watchProjectionMetrics } from '../../projector/open.ts';
import { PARKED_ROUTES, PROJECTION_ROUTES } from '../../projector/projection-routes.ts';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { REJECTION_HEADER } from '../../shared/http/errors.ts';
import { registerRoutes } from '../../shared/http/route.ts';
import { closeGracefully } from '../../shared/http/server/health.ts';
import { createStreams } from '../../shared/http/server/streams.ts';
import { streamOf } from '../../shared/payment/events.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { runCli } from '../support/cli.ts';
import { appendLife } from '../support/many-payments.ts';
import { type MemoryEventStore, memoryEventStore } from '../support/memory-event-store.ts';
import { timeOf, wholeLife } from '../support/payment-events.ts';
import { readModelsIn } from '../support/read-models-here.ts';
import { openApp, signToken } from '../support/service-in-process.ts';
import { silentLog } from '../support/silent-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const PLACE = '/ops/v1/projections';
const PAYMENTS = 60;
const EVENTS = PAYMENTS * wholeLife('pay_1').length;

type Wrap = {
  fill?: (store: MemoryEventStore) => Promise<void>;
  store?: (own: EventStore) => EventStore;
  readModels?: (own: ReadModels) => ReadModels;
};

let close: () => Promise<void> = async () => undefined;
afterEach(() => close());

const fillWhole = async (store: MemoryEventStore): Promise<void> => {
  for (let n = 0; n < PAYMENTS; n += 1) await appendLife(store, `pay_${n}`);
};

/** A projector over payments, `PAYMENTS` whole ones by default, behind its routes. */
const open = async ({
  fill = fillWhole,
  store: wrapStore = (own) => own,
  readModels: wrapReadModels = (own) => own,
}: Wrap = {}) => {
  const folder = temporaryFolder();
  const store = memoryEventStore();
  await fill(store);
  const readModels = wrapReadModels(readModelsIn(folder.path, 'read models.db'));
  const projector: Projector = await startProjector({
    store: wrapStore(store),
    readModels,
    logger: silentLog,
    backOff: { minMs: 1, maxMs: 8 },
  });
  const metrics = createMetrics();
  watchProjectionMetrics(metrics, projector);
  const { app, authHooks } = await openApp({}, metrics);
  registerRoutes(app, authHooks, PARKED_ROUTES, { projector, readModels });
  registerRoutes(app, authHooks, PROJECTION_ROUTES, { projector, streams: createStreams(app) });
  close = async () => {
    await app.close();
    await projector.stop();
    await readModels.close();
    folder.remove();
  };
  const ask = async (method: 'GET' | 'POST', url: string, asking: Asking = {}) => {
    const { merchant = '*', scope = 'ops:admin', accept } = asking;
    const bearer = await signToken({ merchant_id: merchant, sub: 'jane', scope });
    const headers = { authorization: `Bearer ${bearer}`, ...(accept && { accept }) };
    const response = await app.inject({ method, url, headers });
    return { status: response.statusCode, headers: response.headers, body: response.body };
  };
  const projection = async () => JSON.parse((await ask('GET', PLACE)).body).projections[0];
  return { app, ask, projection, projector, metrics, store, readModels };
};
type Asking = { merchant?: string; scope?: string; accept?: string };

/** Read models that wait at this step until it is let go; the checksum is the last one of a rebuild. */
const heldAt = (step: 'checksum' | 'idsAfter') => {
  const begun = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const wrap = ({ compareElsewhere: _, ...own }: ReadModels): ReadModels => ({
    ...own,
    [step]: async (...page: [string | null, number]) => {
      begun.resolve();
      await held.promise;
      return own[step](...page);
    },
  });
  return { begun, held, wrap };
};

type Rejected = { status: number; headers: Record<string, unknown>; body: string };
const rejectionIn = ({ status, headers, body }: Rejected): unknown[] => {
  const { error, details } = JSON.parse(body);
  expect([status, headers['retry-after'], error]).toEqual([503, '5', 'SERVICE_UNAVAILABLE']);
  return [headers[REJECTION_HEADER], ...details];
};

const LIVE = { accept: 'text/event-stream' };
const eventsIn = (body: string) =>
  [...body.matchAll(/^event: (.+)\ndata: (.+)$/gm)].map(([, name, data = '']) => ({
    name,
    data: JSON.parse(data),
  }));

describe('GET /ops/v1/projections', () => {
  test('says how far they are, against the head of the store itself', async () => {
    const { projection, projector, store } = await open();
    await projector.caughtUp;
    const { position } = await store.head(null);
    expect(await projection()).toEqual({
      projection: 'payments',
      state: 'running',
      checkpoint: position,
      head: position,
      lagEvents: 0,
      lagIsExact: true,
      lagSeconds: 0,
      caughtUp: true,
      parked: 0,
      rebuild: null,
    });
  });

  test('where the event store is out of reach, the status still shows everything else', async () => {
    let isGone = false;
    const { projection, projector } = await open({
      store: (own) => ({
        ...own,
        head: async (after) => {
          if (isGone) throw new StoreUnavailable('gone');
          return own.head(after);
        },
      }),
    });
    await projector.caughtUp;
    isGone = true;
    expect(await projection()).toMatchObject({
      head: null,
      lagEvents: null,
      lagIsExact: null,
      lagSeconds: null,
      checkpoint: projector.status().checkpoint,
      reason: 'the event store is out of reach',
    });
  });
});

describe('POST /ops/v1/projections/rebuild', () => {
  test.each([
    ['accept=yes', 'accept must be true or false'],
    ['accept=true&accept=true', 'accept must be true or false'],
    ['acept=true', 'a parameter of another name is not known here'],
  ])('400: %s', async (query, detail) => {
    const { ask } = await open();
    const { status, body } = await ask('POST', `${PLACE}/rebuild?${query}`);
    expect([status, JSON.parse(body).details]).toEqual([400, [detail]]);
  });

  test('responds 202 at once, and the status shows the rebuild until it ends', async () => {
    const { ask, projection, projector, metrics } = await open();
    await projector.caughtUp;
    expect(await metrics.text()).toContain('\npayments_projection_rebuild_ratio 0\n');
    const started = await ask('POST', `${PLACE}/rebuild`);
    expect([started.status, started.headers.location, JSON.parse(started.body)]).toEqual([
      202,
      PLACE,
      { status: 'started', progress: PLACE },
    ]);
    await until('it is done', async () => (await projection()).rebuild.state === 'done');
    expect((await projection()).rebuild).toMatchObject({
      done: EVENTS,
      total: EVENTS,
      secondsLeft: 0,
      result: { events: EVENTS, equal: true, new: { documents: PAYMENTS } },
    });
    expect(await metrics.text()).toContain('\npayments_projection_rebuild_ratio 1\n');
  });

  test('as server-sent events: progress, then the result', async () => {
    const { ask, projector } = await open();
    await projector.caughtUp;
    const { status, headers, body } = await ask('POST', `${PLACE}/rebuild`, LIVE);
    expect([status, headers['content-type']]).toEqual([200, 'text/event-stream']);
    const sent = eventsIn(body);
    expect(sent.length).toBeGreaterThan(1);
    expect(sent.slice(0, -1).map(({ name }) => name)).toEqual(sent.slice(1).map(() => 'progress'));
    expect(sent.at(-1)).toMatchObject({ name: 'result', data: { events: EVENTS, equal: true } });
  });

  test('a second rebuild is rejected with the reason, and the first goes on', async () => {
    const { begun, held, wrap } = heldAt('checksum');
    const { ask, projector } = await open({ readModels: wrap });
    await projector.caughtUp;
    const first = ask('POST', `${PLACE}/rebuild`, LIVE);
    await begun.promise;
    const second = await ask('POST', `${PLACE}/rebuild`);
    const why = 'a rebuild is under way already; GET /ops/v1/projections says how far it is';
    expect(rejectionIn(second)).toEqual(['REBUILD_RUNNING', why]);
    held.resolve();
    expect(eventsIn((await first).body).at(-1)?.name).toBe('result');
    expect((await ask('POST', `${PLACE}/rebuild`)).status).toBe(202);
  });

  test('a rebuild that fails gives its reason, and the old read models are served', async () => {
    let fails = true;
    const { ask, projection, projector } = await open({
      readModels: (own) => ({
        ...own,
        checksum: async () => {
          if (fails) throw new Error('the disk is full');
          return own.checksum();
        },
      }),
    });
    await projector.caughtUp;
    const { body } = await ask('POST', `${PLACE}/rebuild`, LIVE);
    const reason = 'the disk is full';
    expect(eventsIn(body).at(-1)).toEqual({ name: 'failed', data: { reason } });
    expect((await projection()).rebuild).toMatchObject({ state: 'failed', reason });
    fails = false;
    const again = await ask('POST', `${PLACE}/rebuild`, LIVE);
    expect(eventsIn(again.body).at(-1)?.name).toBe('result');
  });

  test('a projector that stands by rejects the rebuild with the reason, and its status says so', async () => {
    const parked = { paymentId: 'pay_1', revision: 1, reason: 'poison', since: timeOf(1) };
    const { ask, projection, projector } = await open({
      readModels: (own) => ({ ...own, lease: async () => false, parked: async () => [parked] }),
    });
    await until('it stands by', () => projector.status().state === 'standing-by');
    const why = 'this projector stands by, or is stopping; ask the one that follows the log';
    for (const path of [`${PLACE}/rebuild`, '/ops/v1/parked/pay_1/retry'])
      expect(rejectionIn(await ask('POST', path))).toEqual(['STANDING_BY', why]);
    expect(await projection()).toMatchObject({ state: 'standing-by', rebuild: null });
  });

  test('a command sent while no projector follows the log is carried out once one has taken over', async () => {
    const other = { leads: true };
    const { app, projector } = await open({
      readModels: (own) => ({
        ...own,
        lease: async (...given) => (other.leads ? false : own.lease(...given)),
      }),
    });
    await until('it stands by', () => projector.status().state === 'standing-by');
    let rejected = 0;
    app.addHook('onResponse', async (_request, { statusCode }) => {
      if (statusCode === 503) rejected += 1;
    });
    const env = {
      PAYMENTS_URL: await app.listen({ host: '127.0.0.1', port: 0 }),
      PAYMENTS_TOKEN: await signToken({ merchant_id: '*', sub: 'jane', scope: 'ops:admin' }),
    };
    const rebuilt = runCli(['projections', 'rebuild', '--yes'], env);
    await until('it was rejected', () => rejected > 1);
    other.leads = false;
    expect(await rebuilt).toMatchObject({ code: 0, stdout: expect.stringContaining(' = ') });
  });

  test('the end of the process waits for no watcher', async () => {
    const { held, wrap } = heldAt('checksum');
    const { app, projector } = await open({ readModels: wrap });
    await projector.caughtUp;
    const url = await app.listen({ host: '127.0.0.1', port: 0 });
    const bearer = await signToken({ merchant_id: '*', sub: 'jane', scope: 'ops:admin' });
    const headers = { ...LIVE, authorization: `Bearer ${bearer}` };
    const { body } = await fetch(`${url}${PLACE}/rebuild`, { method: 'POST', headers });
    const sent: string[] = [];
    for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) {
      sent.push(part);
      if (sent.length === 1) void closeGracefully(app);
    }
    expect(eventsIn(sent.join('')).map(({ name }) => name)).toEqual(['progress']);
    held.resolve();
  });
});

describe('POST /ops/v1/projections/compare', () => {
  test('a second one is rejected with the reason, and the first goes on', async () => {
    const { begun, held, wrap } = heldAt('idsAfter');
    const { ask, projector } = await open({ readModels: wrap });
    await projector.caughtUp;
    const first = ask('POST', `${PLACE}/compare`);
    await begun.promise;
    const second = await ask('POST', `${PLACE}/compare`);
    const why = 'the read models are being compared already; try again when that has ended';
    expect(rejectionIn(second)).toEqual(['COMPARISON_RUNNING', why]);
    held.resolve();
    expect((await first).status).toBe(200);
  });
});

describe('parked payments', () => {
  const REASON = 'has the unknown type PaymentShredded';
  const PARKED = '/ops/v1/parked';
  const entry = (paymentId: string) => {
    return { paymentId, revision: 3, reason: REASON, since: expect.stringContaining('T') };
  };
  const openParked = async () => {
    const opened = await open({
      fill: async (store) => {
        for (const n of [1, 2]) {
          await appendLife(store, `pay_${n}`, `m_${n}`);
          store.damage(streamOf(`pay_${n}`), 3, REASON);
        }
      },
    });
    await opened.projector.caughtUp;
    const asking = async (method: 'GET' | 'POST', path = '', merchant = '*') => {
      const { status, body } = await opened.ask(method, PARKED + path, { merchant });
      return { status, json: JSON.parse(body) };
    };
    const retry = (id: string, merchant?: string) => asking('POST', `/${id}/retry`, merchant);
    return { ...opened, list: (merchant?: string) => asking('GET', '', merchant), retry };
  };

  test('are listed with revision and reason; one merchant sees its own', async () => {
    const { list } = await openParked();
    const parked = [entry('pay_1'), entry('pay_2')];
    expect(await list()).toEqual({ status: 200, json: { parked } });
    expect((await list('m_2')).json).toEqual({ parked: [entry('pay_2')] });
  });

  test('of more than a thousand a merchant sees its own, and each of them can be tried again', async () => {
    const { list, retry, readModels } = await openParked();
    const others = Array.from({ length: 1_001 }, (_, n) => `pay_0${n}`);
    const since = timeOf(0);
    const park = (paymentId: string) =>
      ({ kind: 'park', paymentId, revision: 0, reason: 'cannot be read', time: since }) as const;
    const checkpoint = await readModels.checkpoint();
    await readModels.apply(others.map(park), checkpoint, checkpoint);
    expect((await list()).json.parked).toHaveLength(1_000);
    expect((await list('m_2')).json).toEqual({ parked: [entry('pay_2')] });
    const again = { paymentId: 'pay_2', whole: false, at: 3 };
    expect(await retry('pay_2', 'm_2')).toMatchObject({ status: 200, json: again });
  });

  test('one that is tried again stays while the cause remains, and is whole once that is gone', async () => {
    const { retry, store, readModels, projector } = await openParked();
    const still = { paymentId: 'pay_1', whole: false, at: 3, reason: expect.any(String) };
    expect(await retry('pay_1')).toEqual({ status: 200, json: still });
    store.mend(streamOf('pay_1'));
    const whole = { paymentId: 'pay_1', whole: true };
    expect(await retry('pay_1')).toEqual({ status: 200, json: whole });
    expect(await readModels.getAny('pay_1')).toMatchObject({ revision: 5, parked: false });
    await until('one is left', () => projector.status().parked === 1);
    expect((await retry('pay_1')).status).toBe(404);
    expect((await retry('pay_2', 'm_1')).status).toBe(404);
    expect([(await retry('pay_9')).status, (await retry('pay.9')).status]).toEqual([404, 400]);
  });
});
