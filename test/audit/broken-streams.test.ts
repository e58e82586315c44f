/**
 * What is shown of a payment whose events were changed in the store (L3): the change is named wherever
 * its stream is read, nothing is derived from it, and no command and no GET works on it.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { readBreakLine } from '../../audit/export-lines.ts';
import { GENESIS_HASH, hashOf, linkLog } from '../../shared/event-store/chain.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { streamOf } from '../../shared/payment/events.ts';
import { newEventId } from '../../shared/runtime/ids.ts';
import { eventsOf, NDJSON, openAuditStory } from '../support/audit-story.ts';
import { runCli } from '../support/cli.ts';
import { expectError, idOf, token } from '../support/service-in-process.ts';
import { openRows, type Rows } from '../support/tampering.ts';

const { service, read, own, other, story } = await openAuditStory();

const openLog = (): Rows => openRows(join(service.dataDir, 'events.sqlite'));

type Row = Rows['rows'][number];
type Forge = (row: Row, logHashBefore: string) => Partial<Row>;

const ownHash: Forge = ({ text }) => ({ text, hash: hashOf(text) });
const withLogHash: Forge = ({ text }, before) => {
  const hash = hashOf(text);
  return { text, hash, log_hash: linkLog(before, hash) };
};

/** Changes the text of one event of a payment, and its hashes as `forge` does; gives how to undo it. */
const tamper = (
  paymentId: string,
  revision: number,
  change: (text: string) => string,
  forge: Forge = ({ text }) => ({ text }),
): (() => void) => {
  const log = openLog();
  const stream = log.streams.find(({ name }) => name === `payment-${paymentId}`);
  const at = log.rows.findIndex((r) => r.stream_id === stream?.id && r.revision === revision);
  const row = log.rows[at] as Row;
  const before = log.rows[at - 1]?.log_hash ?? GENESIS_HASH;
  const forged = { ...row, ...forge({ ...row, text: change(row.text) }, before) };
  log.write(log.rows.with(at, forged));
  log.close();
  return () => {
    const now = openLog();
    now.write(now.rows.map((one) => (one.position === row.position ? row : one)));
    now.close();
  };
};

const dearer = (text: string): string => text.replace('"amount":1500', '"amount":9500');

describe.each<[string, number, string, Forge | undefined]>([
  ['its amount', 3, 'its text does not have its hash', undefined],
  ['its amount and its hash', 3, 'it does not follow in the log', ownHash],
  ['its amount, its hash and its log hash', 4, 'it does not follow', withLogHash],
])('a capture whose stored form was changed: %s', (_what, brokenAt, reason, forge) => {
  let restore: () => void;
  beforeAll(() => {
    restore = tamper(story, 3, dearer, forge);
  });
  afterAll(() => restore());

  test('is marked in the timeline, which shows no status and no sums from there on', async () => {
    const { status, json } = await read(`/payments/${story}/events`);
    expect(status).toBe(200);
    expect(json.broken).toMatchObject({
      stream: `payment-${story}`,
      revision: brokenAt,
      reason: expect.stringContaining(reason),
    });
    const events = eventsOf(json);
    expect(events).toHaveLength(6);
    expect(events.map(({ broken }) => broken !== undefined)).toEqual(
      events.map(({ revision }) => revision === brokenAt),
    );
    expect(events.map(({ status: after }) => after !== undefined)).toEqual(
      events.map(({ revision }) => revision < brokenAt),
    );
    expect(events.at(-1)?.amounts).toEqual({ amount: 500, currency: 'USD' });
  });

  test('ends what `state` shows: the states before it, and that there is none after', async () => {
    const before = await read(`/payments/${story}/state?revision=1`);
    expect(before.json).toMatchObject({ revision: 1, payment: { status: 'AUTHORIZED' } });
    expect(before.json.broken).toMatchObject({ revision: brokenAt });
    const time = String(eventsOf((await read(`/payments/${story}/events`)).json)[5]?.time);
    for (const query of ['', `?revision=${brokenAt}`, `?at=${time}`]) {
      const { status, json } = await read(`/payments/${story}/state${query}`);
      expect(status).toBe(200);
      expect(Object.keys(json)).toEqual(['paymentId', 'merchantId', 'broken']);
    }
  });

  test('makes explain say that every command is refused, and why', async () => {
    for (const command of ['capture', 'void', 'refund']) {
      const { json } = await read(`/payments/${story}/explain?command=${command}`);
      expect(json).toMatchObject({ allowed: false, code: 'SERVICE_UNAVAILABLE' });
      expect(json.details[0]).toMatch(`(stream payment-${story}, revision ${brokenAt}): ${reason}`);
      expect(json.status).toBeUndefined();
    }
  });

  test('is shown to its own merchant as broken, and to no other', async () => {
    const { json } = await read(`/payments/${story}/verify`, own);
    expect(json).toMatchObject({ ok: false, broken: { revision: brokenAt } });
    expect((await read(`/payments/${story}/events`, other)).status).toBe(404);
  });
});

describe('a payment whose last event was changed, with its hash', () => {
  const refund = (text: string): string => text.replace('"amount":500', '"amount":50');

  test('is refused by a command that reads the stream, and nothing reaches the provider', async () => {
    await service.restart();
    const before = (await service.ledger(story)).length;
    const restore = tamper(story, 5, refund, ownHash);
    expectError(await service.change('refund', story, {}), 503, 'SERVICE_UNAVAILABLE', [
      expect.stringContaining('nothing was carried out'),
    ]);
    expect(await service.ledger(story)).toHaveLength(before);
    restore();
    expect((await service.change('refund', story, { refundAmount: 1 })).status).toBe(200);
  });

  test('is 503 by a GET that has to fold its stream', async () => {
    const paymentId = idOf(await service.create({ captureNow: true }));
    service.readModels.hold();
    await service.change('refund', paymentId, { refundAmount: 500 });
    expect((await service.get(paymentId)).json.refundedAmount).toBe(500);
    const restore = tamper(paymentId, 4, refund, ownHash);
    const { status, json } = await service.get(paymentId);
    service.readModels.release();
    restore();
    expect({ status, error: json.error }).toEqual({
      status: 503,
      error: 'SERVICE_UNAVAILABLE',
    });
  });
});

describe('a first event that names another merchant', () => {
  let restore: () => void;
  beforeEach(() => {
    restore = tamper(story, 0, (text) => text.replaceAll('m_test', 'm_other'), ownHash);
  });

  test('shows the payment to its own merchant, and not to the one it names', async () => {
    const timeline = await read(`/payments/${story}/events`, own);
    const foreign = await read(`/payments/${story}/events`, other);
    restore();
    expect(timeline.json).toMatchObject({ merchantId: 'm_test', broken: { revision: 0 } });
    expect(foreign.status).toBe(404);
  });
});

describe('the pages and exports of the log', () => {
  test('name an event that was changed, in every span, though it has no time of its own', async () => {
    const restore = tamper(story, 3, () => 'no "JSON"\n at all');
    const span = 'fromTime=2090-01-01T00:00:00Z';
    const page = (await read(`/events?limit=1000&${span}`)).json;
    const lines = (await read(`/events?${span}`, undefined, NDJSON)).text;
    restore();
    const reason = 'its text does not have its hash';
    expect(page.broken).toMatchObject({ stream: `payment-${story}`, revision: 3, reason });
    expect(eventsOf(page)).toEqual([
      expect.objectContaining({ revision: 3, broken: reason, unreadable: expect.any(String) }),
    ]);
    const [line = '', broken = ''] = lines.split('\n');
    expect(JSON.parse(line)).toMatchObject({
      stream: `payment-${story}`,
      revision: 3,
      text: 'no "JSON"\n at all',
    });
    expect(readBreakLine(broken)).toEqual(page.broken);
  });
});

describe('M5: a refund that another program appended again, all hashes right', () => {
  let env: Record<string, string>;
  beforeAll(async () => {
    await service.restart(async (dataDir) => {
      const store = await openSqliteEventStore({ file: join(dataDir, 'events.sqlite') });
      const last = (await store.readStream(streamOf(story))).at(-1);
      if (last === undefined) throw new Error('the story has no events');
      const { id: _, ...again } = last;
      await store.append(last.stream, last, [{ ...again, id: newEventId() }]);
      await store.close();
    });
    env = {
      PAYMENTS_URL: await service.listen(),
      PAYMENTS_TOKEN: await token('*', 'audit:read ops:admin'),
    };
  });

  test.each([
    [['reconcile'], 'differ'],
    [['reconcile', story], 'cannot be compared'],
    [['verify', story], 'no intent of its operation'],
    [['verify', '--read-models'], story],
  ])('%j ends with 3', async (args, text) => {
    const { code, stdout, stderr } = await runCli(args, env);
    expect(stdout + stderr).toContain(text);
    expect(code).toBe(3);
  });
});
