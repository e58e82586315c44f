/** `payments unsettled`, `settle` and `dead-letters`, run as a person runs them (decision 0013). */
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { NO_LADDER, PAYMENTS, signToken } from '../support/in-process.ts';
import { runCli } from '../support/service.ts';
import { openTwoRooms, type Rooms } from '../support/two-rooms.ts';
import { until } from '../support/until.ts';

let rooms: Rooms;
let env: NodeJS.ProcessEnv;
const CLI_MS_MAX = 20_000;

beforeAll(async () => {
  rooms = await openTwoRooms(NO_LADDER);
  await rooms.a.app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = rooms.a.app.server.address() as AddressInfo;
  env = {
    PAYMENTS_URL: `http://127.0.0.1:${port}`,
    PAYMENTS_TOKEN: await signToken({ merchant_id: '*', sub: 'jane', scope: 'ops:admin' }),
  };
}, CLI_MS_MAX);
afterAll(() => rooms[Symbol.asyncDispose]());

test(
  'what is open is listed, ended with evidence, and gone',
  async () => {
    const { a } = rooms;
    a.faults.answersQuestions = false;
    a.faults.next('call lost');
    const lost = await a.create();
    const id = String(lost.headers.location).replace(`${PAYMENTS}/`, '');
    await until('the first try', () => a.side.recovery.list()[0]?.tries === 1);

    const listed = await runCli(['unsettled'], env);
    expect(listed.code).toBe(0);
    expect(listed.stdout.split('\n')[1]).toMatch(
      new RegExp(`^${id}  m_test  +create  +2500  +\\d+ s  +1  +in \\d+ min  +op_`),
    );
    const asJson = await runCli(['unsettled', '--format', 'json'], env);
    expect(JSON.parse(asJson.stdout)).toMatchObject([{ paymentId: id, tries: 1 }]);

    const evidence = ['--evidence', 'letter of the provider'];
    const settled = await runCli(['settle', id, '--outcome', 'declined', ...evidence], env);
    expect(settled).toMatchObject({
      code: 0,
      stdout: `${id}  create declined, now FAILED (revision 1)\n`,
    });
    const again = await runCli(['settle', id, '--outcome', 'declined', ...evidence], env);
    expect([again.code, again.stdout]).toEqual([1, '']);
    expect(again.stderr).toContain('nothing is open on this payment');
    expect(await runCli(['unsettled'], env)).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'Nothing is unsettled.\n',
    });
  },
  CLI_MS_MAX,
);

test(
  'dead-letters: an empty list, and a retry of what is not parked',
  async () => {
    const [list, retry] = await Promise.all([
      runCli(['dead-letters', 'list'], env),
      runCli(['dead-letters', 'retry', 'pay_1'], env),
    ]);
    expect(list).toMatchObject({ code: 0, stdout: '', stderr: 'No payment is parked.\n' });
    expect([retry.code, retry.stdout]).toEqual([1, '']);
    expect(retry.stderr).toContain('PAYMENT_NOT_FOUND');
  },
  CLI_MS_MAX,
);

test(
  'wrong usage: no outcome, no evidence, exit 2',
  async () => {
    const { code, stderr } = await runCli(['settle', 'pay_1', '--outcome', 'maybe'], env);
    expect([code, stderr]).toEqual([2, expect.stringContaining('approved, declined')]);
  },
  CLI_MS_MAX,
);
