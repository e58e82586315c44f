/**
 * What is taken out of a log on EventStoreDB, or put into it, past the service: by each command that an
 * auditor or an operator runs, and over HTTP.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { streamOf } from '../../shared/payment/events.ts';
import { SEALS_STREAM } from '../../shared/payment/seal-events.ts';
import { ReadModelsUnavailable } from '../../shared/read-models/errors.ts';
import { createLogger } from '../../shared/runtime/log.ts';
import { runCli } from '../support/cli.ts';
import { shareOf } from '../support/long-run-share.ts';
import {
  AT_SERVER,
  exportAndVerify,
  openServerService,
  type ServerService,
} from '../support/server-service.ts';
import { expectError, idOf, PAYMENTS, signToken } from '../support/service-in-process.ts';
import { until } from '../support/until.ts';

const DELETED = 'deleted at the server of the event store';
const FOREIGN = 'no event of this service';

type Done = (at: ServerService) => void;

type Case = {
  name: string;
  settings?: Record<string, string>;
  done: Done;
  /** Of the payment that it is done to: what an auditor is told of it; left out where it is not touched. */
  ofPayment?: string;
  /** How the whole log breaks. */
  ofLog: string;
  /** Waited for before anything is done. */
  before?(at: ServerService): Promise<void>;
};

const broken = (name: string, done: Done, ofPayment: string, ofLog = ofPayment): Case => {
  return { name, done, ofPayment, ofLog };
};
const removed = (name: string, ...steps: Done[]): Case =>
  broken(name, (at) => steps.forEach((step) => void step(at)), DELETED);

const { softDelete, tombstone, maxCount, truncate, refuse, scavenge, scavengeTombstone } =
  AT_SERVER;
const foreignInHit: Done = (at) => AT_SERVER.foreignIn(at, streamOf(at.hit));

/** A removal and what another client wrote first, then what is left of one, and a seal. */
const CASES: Case[] = [
  removed('a soft delete', softDelete),
  {
    name: 'a foreign stream',
    done: (at) => AT_SERVER.foreignIn(at, 'payment-other'),
    ofLog: `(stream payment-other, revision 0): ${FOREIGN}`,
  },
  broken('$acl', refuse, "the server refuses this stream to the service's user"),
  broken('$maxCount', maxCount, 'revision 0 is missing', 'begins at revision 2'),
  {
    ...removed('a tombstone and a scavenge, under a seal', tombstone, scavenge),
    settings: { SEAL_EVENTS_MAX: '1' },
    before: (at) =>
      until('it is sealed', async () => (await at.ask('GET', '/ops/v1/log')).json.seal !== null),
    ofLog: 'the log is not the one that was sealed',
  },
  broken('a foreign event in its stream', foreignInHit, FOREIGN),
  broken('a copy of its last event', AT_SERVER.copyOfLast, 'its text does not have its hash'),
  removed('a tombstone', tombstone),
  broken('$tb', truncate, 'revision 0 is missing', 'begins at revision 1'),
  removed('a soft delete and a scavenge', softDelete, scavenge),
  removed('a tombstone and a scavenge, without a seal', tombstone, scavenge),
  removed('the same with nothing left of the tombstone in the log', tombstone, scavengeTombstone),
];

describe.each(shareOf(CASES, 1))('after $name', ({ settings, done, before, ofPayment, ofLog }) => {
  let at: ServerService;
  const nameOfHit = (): string => (ofPayment === undefined ? 'payment-other' : streamOf(at.hit));
  beforeAll(async () => {
    at = await openServerService(settings);
    await before?.(at);
    done(at);
    await at.parked(1);
  });
  afterAll(() => at?.[Symbol.asyncDispose]());

  test('a merchant gets 503 for it, and other payments go on', async () => {
    const { service, hit, other } = at;
    const status = ofPayment === undefined ? 200 : 503;
    expect((await service.get(hit)).status).toBe(status);
    expect((await service.change('refund', hit, { refundAmount: 100 })).status).toBe(status);
    expect((await service.get(other)).status).toBe(200);
    expect((await service.change('refund', other, { refundAmount: 100 })).status).toBe(200);
  });

  test('an auditor is told why by each verb about it', async () => {
    const verbs = [['verify'], ['events'], ['explain', 'refund'], ['reconcile']];
    for (const [verb = '', ...more] of verbs) {
      const { code, stdout, stderr } = await at.cli(verb, at.hit, ...more);
      expect([verb, code]).toEqual([verb, ofPayment === undefined ? 0 : 3]);
      if (ofPayment === undefined) continue;
      const reason = verb === 'reconcile' ? streamOf(at.hit) : ofPayment;
      expect(stdout + stderr).toContain(reason);
    }
    const { json } = await at.ask('GET', `/audit/v1/payments/${at.hit}/verify`);
    const broken = { reason: expect.stringContaining(ofPayment ?? '') };
    expect(json).toMatchObject(ofPayment === undefined ? { finding: 'INTACT' } : { broken });
  });

  test('the log is not intact, and what it lost or was given is named', async () => {
    const { code, stdout, stderr } = await at.cli('verify', '--all');
    expect([code, stdout.includes('intact')]).toEqual([3, false]);
    expect(stderr + stdout).toContain(ofLog);
    expect(stderr + stdout).toContain(nameOfHit());
    expect(await at.service.metric('payments_log_broken')).toBe(1);
    const { json } = await at.ask('GET', '/audit/v1/verify');
    expect(json).toMatchObject({ ok: false, finding: 'BROKEN' });
    const named = expect.arrayContaining([expect.objectContaining({ stream: nameOfHit() })]);
    expect(json.breaks).toMatchObject({ named });
  });

  test('an export of its events is not intact', async () => {
    if (ofPayment === undefined) return;
    const { exported, verified } = await exportAndVerify(at, 'payment', at.hit);
    for (const { code, stderr } of [exported, verified]) {
      expect(code).toBe(3);
      expect(stderr).toContain(ofPayment);
    }
  });

  test('an export is not intact, neither when it is written nor later', async () => {
    const { exported, verified } = await exportAndVerify(at, 'log');
    for (const { code, stdout, stderr } of [exported, verified]) {
      expect([code, stdout.includes('intact')]).toEqual([3, false]);
      expect(stderr).toContain('verification');
      expect(stderr + stdout).toContain(nameOfHit());
    }
  });

  test('the read models are not the same, and a rebuild says no other', async () => {
    const paymentId = ofPayment === undefined ? 'other' : at.hit;
    const compared = await at.cli('verify', '--read-models');
    expect(compared).toMatchObject({
      code: 3,
      stdout: expect.stringMatching(new RegExp(`^${paymentId} +parked +`, 'm')),
    });
    const rebuilt = await at.cli('projections', 'rebuild', '--yes');
    expect(rebuilt.code).toBe(3);
    expect(rebuilt.stderr).toContain(`parked: ${paymentId}`);
    expect(rebuilt.stderr).toContain('payments verify --read-models');
  });

  test('doctor says what stands there, and which command shows it', async () => {
    const { code, stdout, stderr } = await at.cli('doctor');
    expect([code, stderr]).toEqual([3, expect.stringContaining('need a person')]);
    expect(stdout).toMatch(/ PARKED_READ_MODEL +Its read model .* payments parked retry /);
    expect(stdout).toMatch(/ LOG_BROKEN +The event log is not .* payments verify --all /);
    expect(stderr).not.toContain('Nothing is wrong');
  });
});

test('what was removed is never answered as if it had never been, and no provider is asked about it', async () => {
  await using at = await openServerService();
  const { service, standIn } = at;
  const sale = (key: string) => service.create({ captureNow: true }, { key });
  const sold = idOf(await sale('sold'));
  standIn.softDelete(streamOf(sold));
  await at.parked(1);
  const expectBarred = async (): Promise<void> => {
    const before = await service.ledger();
    for (const response of [
      await service.get(sold),
      await service.change('refund', sold, { refundAmount: 100 }, { key: 'refund' }),
      await service.change('void', sold),
      await sale('sold'),
    ]) {
      const details = [expect.stringContaining('an operator has to look at it')];
      expectError(response, 503, 'SERVICE_UNAVAILABLE', details);
      expect(response.headers['retry-after']).toBe('30');
    }
    expect(await service.ledger()).toEqual(before);
  };
  await expectBarred();
  const scope = 'payments:read payments:write audit:read';
  const foreign = { token: await signToken({ merchant_id: 'm_2', sub: 'auditor', scope }) };
  expect((await service.get(sold, foreign)).status).toBe(404);
  expect((await service.change('refund', sold, {}, foreign)).status).toBe(404);
  const { payments } = (await service.ask('GET', PAYMENTS)).json;
  expect(payments).toMatchObject([{ paymentId: sold }, {}, {}]);
  const own = idOf(await service.create({}, foreign));
  type Entry = { paymentId: string; revision: number; position: string };
  const { events } = (await at.ask('GET', '/audit/v1/events?limit=1000')).json;
  const second = (events as Entry[]).find((one) => one.paymentId === sold && one.revision === 1);
  // Another merchant reads on from between two of its events.
  const from = `/audit/v1/events?from=${second?.position}`;
  const page = await service.ask('GET', from, undefined, foreign);
  const seen = (page.json.events as Entry[]).map(({ paymentId }) => paymentId);
  expect(new Set(seen)).toEqual(new Set([own]));

  standIn.scavenge();
  await service.restart();
  await expectBarred();
  // The provider holds what the log lost, and yet the log is no older copy.
  expect((await sale('after')).status).toBe(200);
  standIn.softDelete(SEALS_STREAM);
  const { status, headers } = await service.ask('GET', '/audit/v1/events', undefined, {
    token: await signToken({ merchant_id: '*', sub: 'auditor', scope: 'audit:read' }),
    headers: { accept: 'application/x-ndjson' },
  });
  expect([status, headers['export-guarantee']]).toEqual([200, 'stream']);
});

test('an auditor is told why also after a restart, which has seen nothing of a soft delete', async () => {
  await using at = await openServerService();
  AT_SERVER.softDelete(at);
  await at.parked(1);
  await at.service.create();
  await at.service.restart();
  const reason = expect.stringContaining(DELETED);
  for (const [verb, expected] of [
    ['verify', { broken: expect.objectContaining({ reason }) }],
    ['events', { broken: expect.objectContaining({ reason }) }],
    ['explain?command=refund', { broken: expect.objectContaining({ reason }) }],
    ['reconcile', { ok: false, operations: [], unreadable: reason }],
  ] as const) {
    const { status, json } = await at.ask('GET', `/audit/v1/payments/${at.hit}/${verb}`);
    expect([verb, status, json]).toEqual([verb, 200, expect.objectContaining(expected)]);
  }
  const { status } = await at.service.ask('GET', `/audit/v1/payments/${at.hit}/reconcile`, '', {
    token: await signToken({ merchant_id: 'm_2', sub: 'auditor', scope: 'audit:read' }),
  });
  expect(status).toBe(404);
});

test('an auditor of all merchants is told why also while the read models are away', async () => {
  let isAway = false;
  await using at = await openServerService(undefined, {
    readModels: (own) => ({
      ...own,
      getAny: async (paymentId) => {
        if (isAway) throw new ReadModelsUnavailable('away');
        return own.getAny(paymentId);
      },
    }),
  });
  AT_SERVER.tombstone(at);
  AT_SERVER.foreignIn(at, streamOf(at.other));
  await at.parked(2);
  isAway = true;
  for (const [paymentId, reason] of [
    [at.hit, DELETED],
    [at.other, FOREIGN],
  ] as const) {
    const { code, stdout, stderr } = await at.cli('verify', paymentId);
    expect([code, stdout + stderr]).toEqual([3, expect.stringContaining(reason)]);
  }
});

test('recovery leaves a stream that another client began alone', async () => {
  const warned: unknown[] = [];
  const { log } = createLogger({ level: 'silent', destination: 'stdout' });
  const warn = (fields: object): void => void warned.push(Object(fields).paymentId);
  await using at = await openServerService(undefined, undefined, Object.assign(log, { warn }));
  AT_SERVER.foreignIn(at, 'payment-other');
  await at.parked(1);
  AT_SERVER.copyOfLast(at);
  await at.parked(2);
  await at.service.restart();
  await until('recovery has looked at both', () => warned.includes(at.hit));
  expect(warned).not.toContain('other');
});

test('events of another prefix are passed over, and doctor says where it cannot look at the server', async () => {
  await using at = await openServerService();
  AT_SERVER.foreignIn(at, 'payments-other');
  expect((await at.cli('verify', '--all')).code).toBe(0);
  expect((await at.cli('verify', '--read-models')).code).toBe(0);
  const looked = await at.cli('doctor');
  expect([looked.code, looked.stderr]).toEqual([0, expect.stringContaining('Nothing is wrong')]);
  expect(looked.stdout).not.toContain('not looked at');
  const { EVENTSTOREDB_URL: _, ...env } = at.env;
  const { code, stdout } = await runCli(['doctor'], env);
  const missed = 'not looked at: EventStoreDB: version, leader and rights';
  expect([code, stdout]).toEqual([0, expect.stringContaining(missed)]);
});

test('a removal is found by the scheduled verification', async () => {
  await using at = await openServerService({ VERIFY_INTERVAL_MS: '200' });
  AT_SERVER.softDelete(at);
  await until(
    'the log is broken',
    async () => (await at.service.metric('payments_log_broken')) === 1,
  );
  const { json } = await at.ask('GET', '/ops/v1/log');
  const broken = { stream: streamOf(at.hit), reason: DELETED };
  expect(json).toMatchObject({ verification: { broken } });
});
