/**
 * gaps §19, end to end: texts of a person that exist nowhere else are sent in every sealed field, and every byte
 * that the service keeps, logs, streams or publishes is searched for them, before an erasure and after it.
 */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { KEYS_FILE, MASTER_KEY_FILE } from '../../personal-data/open.ts';
import type { EventStore, RecordedEvent } from '../../shared/event-store/port.ts';
import { createLogger } from '../../shared/runtime/log.ts';
import type { Topic } from '../../topics/port.ts';
import { runCli } from '../support/cli.ts';
import { describeUnless } from '../support/describe-driver.ts';
import { startStandIn } from '../support/eventstoredb-stand-in.ts';
import { kafkaFeedDriver, memoryFeedDriver } from '../support/feed-drivers.ts';
import { memoryDocument } from '../support/memory-feed.ts';
import { mongoServer } from '../support/mongo-server.ts';
import {
  CANARIES,
  canaryBody,
  EMAIL,
  filesIn,
  findings,
  HOLDER,
  type Place,
  REASON,
} from '../support/personal-canaries.ts';
import { relaying } from '../support/relaying.ts';
import { settingsAt } from '../support/server-service.ts';
import {
  type InProcess,
  openInProcess,
  PAYMENTS,
  SECRET,
  signToken,
} from '../support/service-in-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const BODY = canaryBody();
const folder = temporaryFolder();
const destination = { file: join(folder.path, 'service.log') };
const { log } = createLogger({ level: 'trace', destination });
afterAll(folder.remove);

const openFiles = async () => ({
  settings: {} as Record<string, string>,
  /** Beside the data folder. */
  stored: async (dataDir: string): Promise<Place[]> => {
    const copy = join(folder.path, crypto.randomUUID());
    const env = { DATA_DIR: dataDir, JWT_SECRET: SECRET };
    expect(await runCli(['backup', copy], env)).toMatchObject({ code: 0 });
    expect(filesIn(dataDir).map(([name]) => name)).toContain(MASTER_KEY_FILE);
    return filesIn(copy);
  },
  loseKeys: async (dataDir: string): Promise<unknown> => {
    using db = new DatabaseSync(join(dataDir, KEYS_FILE));
    return db.exec('DELETE FROM personal_key WHERE wrapped IS NOT NULL');
  },
  close: async (): Promise<void> => undefined,
});

const mongo = await mongoServer();
const broker = kafkaFeedDriver.skip === undefined ? kafkaFeedDriver : memoryFeedDriver;

const openServers = async (): ReturnType<typeof openFiles> => {
  if ('skip' in mongo) throw new Error(mongo.skip);
  const { url, drop } = mongo.database();
  const client = new MongoClient(url);
  const standIn = await startStandIn();
  return {
    settings: { ...settingsAt(standIn.url), MONGODB_URL: url },
    stored: async () => {
      const log = [...standIn.streams()].map((name) => [name, standIn.dataOf(name)]);
      const places: Place[] = [['EventStoreDB', JSON.stringify(log)]];
      for (const one of await client.db().collections())
        places.push([one.collectionName, JSON.stringify(await one.find().toArray())]);
      return places;
    },
    loseKeys: () => client.db().collection('personal_keys').deleteMany({ erasedAt: null }),
    close: async () => {
      await client.close();
      await drop();
      await standIn.close();
    },
  };
};

const describeErasure = (open: typeof openFiles): void => {
  let at: Awaited<ReturnType<typeof openFiles>>;
  let service: InProcess;
  let store: EventStore;
  let id: string;
  let made: string;
  let live = '';

  const asOperator = (sub: string, scope = 'ops:erase') =>
    signToken({ merchant_id: 'm_test', sub, scope });
  const audit = async (path: string, scope = 'audit:read') =>
    service.ask('GET', `/audit/v1${path}`, undefined, {
      token: await asOperator('auditor', scope),
    });
  const order = { reason: 'CONSUMER_REQUEST', ticket: 'DPO-17' };
  const erase = async (sub: string, body: object = order, paymentId = id) =>
    service.ask('POST', `/ops/v1/payments/${paymentId}/erase`, body, {
      token: await asOperator(sub),
    });

  /** As a broker gets them. */
  const published = async (): Promise<Place[]> => {
    const feed = await broker.make();
    const events = (await store.readAll(null, 1_000)) as RecordedEvent[];
    const end = events.at(-1)?.position;
    await relaying({ store, feed: feed.open(), checkpoint: memoryDocument() }, (relay) =>
      until('all is sent', () => relay.status().checkpoint === end),
    );
    const count = events.filter(({ stream }) => stream.startsWith('payment-')).length;
    const read = async (topic: Topic): Promise<Place> => {
      return [topic, JSON.stringify(await feed.read(topic, count))];
    };
    return Promise.all([read('events'), read('state')]).finally(feed.remove);
  };

  /** What is kept and sent without the merchant's own answers: files, backup, export, topics, audit. */
  const kept = async (): Promise<Place[]> => {
    const read = async (path: string): Promise<Place> => {
      const { status, text } = await audit(path);
      expect([path, status]).toEqual([path, 200]);
      return [path, text];
    };
    return [
      ...(await at.stored(service.dataDir)),
      ...filesIn(service.dataDir),
      ...filesIn(folder.path),
      ['live stream', live],
      ...(await published()),
      await read('/export'),
      await read('/events'),
      await read(`/payments/${id}/events`),
      await read(`/payments/${id}/state?revision=0`),
      await read('/payments'),
    ];
  };

  beforeAll(async () => {
    at = await open();
    const settings = { ERASURE_HOLD_DAYS: '0', ...at.settings };
    service = await openInProcess(settings, log, {
      store: (own) => {
        store = own;
        return own;
      },
    });
    const stream = `${await service.listen()}/audit/v1/events/stream?from=now`;
    const auditor = await asOperator('auditor', 'audit:read audit:personal');
    const headers = { authorization: `Bearer ${auditor}`, accept: 'text/event-stream' };
    const { body } = await fetch(stream, { headers });
    const listen = async (): Promise<void> => {
      for await (const part of body ?? []) live += Buffer.from(part);
    };
    // A restart cuts it off.
    listen().catch(() => undefined);
    const response = await service.ask('POST', PAYMENTS, BODY, { key: 'canary' });
    expect([response.status, response.json.details]).toEqual([200, undefined]);
    id = response.json.paymentId;
    made = response.text;
    expect((await service.change('refund', id, { amount: 100, reason: REASON })).status).toBe(200);
  });
  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    await at.close();
  });

  test('before an erasure a text of a person is in the answers to its merchant alone', async () => {
    await until('it is live', () => live.includes('event: PaymentRefunded'));
    expect(findings(await kept())).toEqual([]);
    const shown = CANARIES.filter((text) => !/previousFailures|reason|2019/.test(text));
    for (const text of shown) expect(made).toContain(JSON.stringify(text));
    const got = await service.get(id);
    for (const text of shown) expect(got.text).toContain(JSON.stringify(text));
    const repeat = await service.ask('POST', PAYMENTS, BODY, { key: 'canary' });
    expect([repeat.status, repeat.text]).toEqual([200, made]);
  });

  test('an auditor sees it with the scope audit:personal, of a sealed text that it is sealed', async () => {
    const path = `/payments/${id}/events`;
    const opened = (await audit(path, 'audit:read audit:personal')).text;
    for (const text of CANARIES) expect(opened).toContain(JSON.stringify(text));
    const { events } = (await audit(path)).json as unknown as {
      events: { data: object }[];
    };
    expect(events[0]?.data).toMatchObject({ personal: { sealed: true } });
    expect(events[3]?.data).toMatchObject({ reason: { sealed: true } });
    expect((await audit(`${path}?personal=true`)).status).toBe(403);
    const closed = await audit(`${path}?personal=false`, 'audit:read audit:personal');
    expect(findings([['closed', closed.text]])).toEqual([]);
    const logged = (await store.readAll(null, 1_000)) as RecordedEvent[];
    const accesses = logged.map(({ event: { data } }) => 'parameters' in data && data.parameters);
    const personal = accesses.filter((one) => /personal/.test(String(one)));
    expect(personal).toEqual(['personal=true', 'personal=false']);
  });

  describe('after an erasure by two persons', () => {
    let receipt: string;
    const erasedBody = (text: string): void => {
      const { paymentMethod, productItems, personalData, ...body } = JSON.parse(text);
      expect(paymentMethod.card).toMatchObject({ holderName: 'ERASED', last4: '4242' });
      expect(productItems).toMatchObject([{ name: 'ERASED', unitPrice: 1 }]);
      expect(personalData).toEqual({ erased: true, erasedAt: expect.any(String) });
      for (const gone of ['consumer', 'billing', 'shipping', 'descriptor'])
        expect(body).not.toHaveProperty(gone);
    };

    test('the first person requests it, and stays the only one however often', async () => {
      for (const _ of [1, 2]) {
        const first = await erase('jane');
        expect([first.status, first.json]).toMatchObject([202, { requestedBy: 'jane' }]);
      }
      expect((await service.get(id)).text).toContain(HOLDER);
    });

    test('of twenty approvals at once one erases, and all answer that it is done', async () => {
      receipt = (await audit('/export')).text;
      const shown = Promise.all(Array.from({ length: 20 }, () => service.get(id)));
      const approvals = await Promise.all(Array.from({ length: 20 }, () => erase('ann')));
      // Each of them reads it as it was, or as it is.
      for (const { text } of [...(await shown), await service.get(id)])
        expect(text.includes(HOLDER)).toBe(!text.includes('"erased":true'));
      expect((await service.get(id)).text).not.toContain(HOLDER);
      expect([...new Set(approvals.map(({ status, text }) => `${status} ${text}`))]).toHaveLength(
        1,
      );
      expect(approvals[0]).toMatchObject({ status: 200, json: { erasedAt: expect.any(String) } });
      const log = await audit(`/payments/${id}/events`);
      expect(log.text.match(/"type":"PaymentPersonalDataErased"/g)).toHaveLength(1);
      expect(log.text).toContain('"personal":{"erased":true');
    });

    test('GET, list, repeat and the state of before show ERASED, its money as it was', async () => {
      const got = await service.get(id);
      erasedBody(got.text);
      expect(got.json).toMatchObject({ status: 'CAPTURED', capturedAmount: 2500 });
      await until('the list shows it', async () =>
        (await service.ask('GET', PAYMENTS)).text.includes(`[${got.text}]`),
      );
      erasedBody((await service.ask('POST', PAYMENTS, BODY, { key: 'canary' })).text);
      const before = `/payments/${id}/state?revision=0`;
      const state = await audit(before, 'audit:read audit:personal');
      erasedBody(JSON.stringify(state.json.payment));
    });

    test('the log verifies, and what was exported before is its beginning', async () => {
      const verified = await audit(`/payments/${id}/verify`);
      expect(verified.json).toMatchObject({ ok: true });
      const now = (await audit('/export')).text;
      const lines = receipt.split('\n').slice(0, 4);
      expect(now.split('\n').slice(0, 4)).toEqual(lines);
    });

    test('a refund goes on, and an erased payment cannot be held', async () => {
      expect((await service.change('refund', id, { amount: 100 })).status).toBe(200);
      const jane = { token: await asOperator('jane') };
      const path = `/ops/v1/payments/${id}/erase/hold`;
      expect((await service.ask('PUT', path, { ticket: 'CASE-1' }, jane)).status).toBe(422);
      expect((await erase('jane')).status).toBe(200);
    });

    test('no text is left, also after a restart and with the keys of the folder', async () => {
      await until('it is live', () => live.includes('event: PaymentPersonalDataErased'));
      await service.restart();
      expect(findings(await kept())).toEqual([]);
      erasedBody((await service.get(id)).text);
    });
  });

  test('a person is found by the address in any case, never by another one, and the address is not recorded', async () => {
    const other = await service.create({
      consumer: { firstName: 'J', email: EMAIL.toUpperCase() },
    });
    const search = async (email: string) =>
      service.ask('POST', '/ops/v1/people/search', { email }, { token: await asOperator('jane') });
    expect((await search(` ${EMAIL.toLowerCase()}`)).json).toEqual({
      payments: [other.json.paymentId],
    });
    expect((await search('x@example.com')).json).toEqual({ payments: [] });
    const log = await service.ask('GET', '/audit/v1/events?limit=1000', undefined, {
      token: await signToken({ merchant_id: '*', sub: 'auditor', scope: 'audit:read' }),
    });
    expect(log.text).toContain('"action":"PEOPLE"');
    expect(log.text.toLowerCase()).not.toContain(EMAIL.toLowerCase());
  });

  test('a hold keeps the texts until it is released, and needs the scope', async () => {
    const { paymentId } = (await service.create({ captureNow: true })).json;
    const path = `/ops/v1/payments/${paymentId}/erase/hold`;
    const jane = { token: await asOperator('jane') };
    const held = await service.ask('PUT', path, { ticket: 'CASE-4711' }, jane);
    expect([held.status, held.json]).toEqual([200, { paymentId, heldBy: 'CASE-4711' }]);
    const refused = await erase('ann', order, paymentId);
    expect(refused.json.details).toEqual(['the payment is held: CASE-4711']);
    const admin = { token: await asOperator('jane', 'ops:admin') };
    expect((await service.ask('DELETE', path, undefined, admin)).status).toBe(403);
    expect((await service.ask('DELETE', path, undefined, jane)).json).toEqual({ paymentId });
    expect((await erase('ann', order, paymentId)).status).toBe(202);
    const other = await signToken({ merchant_id: 'm_other', sub: 'eve', scope: 'ops:erase' });
    expect((await service.ask('PUT', path, { ticket: 'x' }, { token: other })).status).toBe(404);
  });

  const listed = async (of: string): Promise<string[]> => {
    const operator = { token: await asOperator('jane', 'ops:admin') };
    const { json } = await service.ask('GET', '/ops/v1/attention', undefined, operator);
    const items = json.items as { paymentId?: string; what: string }[];
    return items.flatMap(({ paymentId, what }) => (paymentId === of ? [what] : []));
  };

  test('a look at all keys lists a lost one that no reader has met, also after a restart', async () => {
    const { paymentId } = (await service.create({ captureNow: true })).json;
    await at.loseKeys(service.dataDir);
    const token = await signToken({ merchant_id: '*', sub: 'eve', scope: 'audit:read' });
    const look = () => service.ask('GET', '/audit/v1/verify?keys=true', undefined, { token });
    expect((await look()).json).toMatchObject({ ok: false, finding: 'INTACT' });
    await service.restart();
    expect(await listed(paymentId)).toEqual([expect.stringMatching(/its key is missing/)]);
    for (const sub of ['jane', 'ann']) await erase(sub, order, paymentId);
    await look();
    expect(await listed(paymentId)).toEqual([]);
  });

  test('a key that is lost without an erasure is told, and its payment goes on', async () => {
    const { paymentId } = (await service.create({ captureNow: true })).json;
    await at.loseKeys(service.dataDir);
    // The answer's body is kept.
    await service.restart();
    const got = await service.get(paymentId);
    expect(got.json).toMatchObject({
      paymentMethod: { card: { holderName: 'UNAVAILABLE' } },
      personalData: { unavailable: true },
    });
    expect((await service.change('refund', paymentId, { amount: 1 })).status).toBe(200);
    expect(await listed(paymentId)).toEqual([expect.stringMatching(/its key is missing/)]);
    for (const sub of ['jane', 'ann']) await erase(sub, order, paymentId);
    expect((await service.get(paymentId)).text).toContain('"holderName":"ERASED"');
  });
};

describe('files', () => describeErasure(openFiles));
describeUnless(
  'skip' in mongo ? mongo.skip : undefined,
  `EventStoreDB (stand-in), ${mongo.name}`,
  () => describeErasure(openServers),
);
