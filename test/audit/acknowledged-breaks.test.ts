/**
 * A break of the log that a person has looked at, and that may stay: it is listed by every verification,
 * and breaks nothing by itself. Breaks are counted past the first one.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { hashOf } from '../../shared/event-store/chain.ts';
import { streamOf } from '../../shared/payment/events.ts';
import { runCli } from '../support/cli.ts';
import {
  AT_SERVER,
  exportAndVerify,
  openServerService,
  type ServerService,
} from '../support/server-service.ts';
import { openInProcess, SECRET } from '../support/service-in-process.ts';
import { openRows } from '../support/tampering.ts';
import { until } from '../support/until.ts';

const NOTE = 'TICKET-17: written by a test client';
const acknowledge = (at: ServerService, name: string) =>
  at.cli('verify', '--acknowledge', name, '--note', NOTE);

describe('a foreign stream on EventStoreDB', () => {
  let at: ServerService;
  beforeAll(async () => {
    at = await openServerService();
    AT_SERVER.foreignIn(at, 'payment-other');
    await at.parked(1);
  });
  afterAll(() => at?.[Symbol.asyncDispose]());

  test('is acknowledged by name: the log is intact again, and says so each time with the name', async () => {
    expect(await at.cli('verify', '--all')).toMatchObject({ code: 3 });
    const { code, stdout } = await acknowledge(at, 'payment-other@0');
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^intact /)]);
    for (const again of [stdout, (await at.cli('verify', '--all')).stdout])
      expect(again).toMatch(
        /^acknowledged {2}payment-other@0 {2}position .* no event of this service {2}by ann@example\.com at .*: TICKET-17/m,
      );
    expect(await at.service.metric('payments_log_broken')).toBe(0);
    const { json } = await at.ask('GET', '/audit/v1/verify');
    expect(json).toMatchObject({
      ok: true,
      breaks: { count: 0, named: [], acknowledged: [{ stream: 'payment-other', note: NOTE }] },
    });
  });

  test('is no payment any more: for the read models, a rebuild, an export and doctor', async () => {
    await at.parked(0);
    const compared = await at.cli('verify', '--read-models');
    expect(compared).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/the same {2}2 documents, 2 payments in the log/),
    });
    expect((await at.cli('projections', 'rebuild', '--yes')).code).toBe(0);
    const { exported, verified } = await exportAndVerify(at, 'acknowledged');
    expect(exported.code).toBe(0);
    expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining(NOTE) });
    expect((await at.cli('doctor')).code).toBe(0);
  });

  test('is a break again with another event, and with another text in the place of the first', async () => {
    AT_SERVER.foreignIn(at, 'payment-other');
    const more = await at.cli('verify', '--all');
    expect(more).toMatchObject({ code: 3, stderr: expect.stringContaining('revision 1') });
    expect((await acknowledge(at, 'payment-other@1')).code).toBe(0);
    at.standIn.rewrite('payment-other', 0, () => '{"amount":2}');
    const changed = await at.cli('verify', '--all');
    expect(changed).toMatchObject({ code: 3, stderr: expect.stringContaining('revision 0') });
  });

  test('does not hide what happens after it: each break is named, and all are counted', async () => {
    AT_SERVER.softDelete(at);
    AT_SERVER.foreignIn(at, streamOf(at.other));
    const { code, stdout, stderr } = await at.cli('verify', '--all');
    expect([code, stderr]).toEqual([3, expect.stringContaining('3 breaks in all')]);
    for (const name of ['payment-other@0', `${streamOf(at.hit)}@0`, `${streamOf(at.other)}@`])
      expect(stdout).toContain(`BREAK  ${name}`);
  });

  test('what is no break, a note that is missing, and a merchant are refused', async () => {
    const none = await acknowledge(at, 'payment-other@9');
    expect([none.code, none.stderr]).toEqual([
      1,
      expect.stringContaining('payment-other@9 is no break of the log'),
    ]);
    expect((await at.cli('verify', '--acknowledge', 'payment-other@0')).code).toBe(2);
    const path = '/ops/v1/log/acknowledge';
    expect((await at.ask('POST', path, {})).json.details).toEqual([
      'stream is required',
      'revision is required',
      'reason is required',
      'note is required',
    ]);
    const beforehand = {
      stream: 'payment-later',
      revision: 0,
      reason: 'no event of this service',
      note: NOTE,
    };
    const refused = await at.ask('POST', path, beforehand);
    expect([refused.status, refused.json.details]).toEqual([
      422,
      [
        'the last verification of the log named no such break; verify it first: payments verify --all',
      ],
    ]);
    const named = await at.ask('POST', path, { ...beforehand, note: 'ask ann@shop.example' });
    expect([named.status, named.json.details]).toEqual([
      400,
      ['note must not hold an @: no e-mail address may be kept'],
    ]);
  });

  test('a stream of the service that holds no payment is missed by name too', async () => {
    const stream = [...at.standIn.streams()].find((name) => name.startsWith('audit-')) ?? '';
    at.standIn.softDelete(stream);
    const { json } = await at.ask('GET', '/audit/v1/verify');
    const named = expect.arrayContaining([expect.objectContaining({ stream })]);
    expect(json).toMatchObject({ finding: 'BROKEN', breaks: { named } });
  });
});

test('the seals before and after a foreign event fit, and it is the only break', async () => {
  await using at = await openServerService({ SEAL_EVENTS_MAX: '1' });
  const sealedTo = async () => {
    const { seal } = JSON.parse((await at.ask('GET', '/ops/v1/log')).text);
    return Number.parseInt(seal?.position ?? '0', 10);
  };
  await until('it is sealed', async () => (await sealedTo()) > 0);
  const before = await sealedTo();
  // The next seal is of the place of this very event.
  AT_SERVER.foreignIn(at, 'payment-other');
  await until('it is sealed again', async () => (await sealedTo()) > before);
  const { json } = await at.ask('GET', '/audit/v1/verify');
  const { seals } = json.sealed as { seals: number };
  expect(json.breaks).toMatchObject({ count: 1, named: [{ stream: 'payment-other' }] });
  expect(seals).toBeGreaterThan(1);
});

describe('one after another on EventStoreDB', () => {
  let at: ServerService;
  beforeAll(async () => {
    at = await openServerService();
  });
  afterAll(() => at?.[Symbol.asyncDispose]());

  test('a removal is acknowledged as well', async () => {
    AT_SERVER.tombstone(at);
    await at.parked(1);
    expect((await acknowledge(at, `${streamOf(at.hit)}@0`)).code).toBe(0);
    const again = await at.cli('verify', '--all');
    expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining(NOTE) });
  });

  test('of a hundred and twenty foreign streams the first hundred are named, and all are counted', async () => {
    for (let n = 0; n < 120; n += 1) AT_SERVER.foreignIn(at, `payment-other${n}`);
    const { json } = await at.ask('GET', '/audit/v1/verify');
    const { named, count } = json.breaks as { named: object[]; count: number };
    expect([named.length, count]).toEqual([100, 120]);
  });
});

test('a changed event on SQLite, with its hash, is one break, and is acknowledged by name', async () => {
  await using service = await openInProcess();
  const stream = streamOf(String((await service.create({ captureNow: true })).json.paymentId));
  const env = { PAYMENTS_URL: await service.listen(), JWT_SECRET: SECRET };
  const rows = openRows(`${service.dataDir}/events.sqlite`);
  const at = rows.rows.findIndex(({ text }) => JSON.parse(text).stream === stream);
  const change = (amount: string) => {
    const text = rows.rows[at]?.text.replace('"amount":', `"amount":${amount}`) ?? '';
    // The event after it in its stream names the hash that it had, and was not changed.
    const forged = { text, hash: hashOf(text) };
    rows.write(rows.rows.map((row, n) => (n === at ? { ...row, ...forged } : row)));
  };
  change('1');
  const { code, stderr } = await runCli(['verify', '--all'], env);
  expect([code, stderr]).toEqual([3, expect.not.stringContaining('breaks in all')]);
  const named = ['verify', '--acknowledge', `${stream}@0`, '--note', NOTE];
  const acknowledged = await runCli(named, env);
  expect(acknowledged).toMatchObject({ code: 0, stdout: expect.stringContaining(NOTE) });
  change('2');
  expect((await runCli(['verify', '--all'], env)).code).toBe(3);
  rows.close();
});
