/** `payments unresolved`, `resolve` and `parked`, run as a person runs them (gaps §16). */
import { expect, test } from '@jest/globals';
import { expectError, runCli } from '../support/cli.ts';
import { locatedId, NO_RETRIES, PAYMENTS, signToken } from '../support/service-in-process.ts';
import { processesOfTests } from '../support/two-command-processes.ts';
import { until } from '../support/until.ts';

const tokenOf = (sub: string) =>
  signToken({ merchant_id: '*', sub, scope: 'ops:admin ops:resolve' });

const processes = await processesOfTests(NO_RETRIES);
const PAYMENTS_URL = await processes.a.app.listen({ host: '127.0.0.1', port: 0 });
const env = { PAYMENTS_URL, PAYMENTS_TOKEN: await tokenOf('jane') };
const john = { PAYMENTS_URL, PAYMENTS_TOKEN: await tokenOf('john') };

const EVIDENCE = ['--without-fence', '--evidence', 'letter of the provider'];
const wordOn = (id: string) => ['resolve', id, '--outcome', 'declined', ...EVIDENCE];

test('gaps §16: an unresolved payment is listed, resolved by two persons, and listed no longer', async () => {
  const { a } = processes;
  a.faults.respondsToLookUps = false;
  a.faults.next('call lost');
  const lost = await a.create();
  const id = String(lost.headers.location).replace(`${PAYMENTS}/`, '');
  await until('the first look-up has failed', () => a.side.unresolved.list()[0]?.attempts === 1);

  const listed = await runCli(['unresolved'], env);
  expect(listed.code).toBe(0);
  expect(listed.stdout.split('\n')[1]).toMatch(
    new RegExp(
      `^${id}  m_test  +unresolved  +create  +25\\.00 USD  +\\d+ s  +1  +in \\d+ min  +op_`,
    ),
  );
  const asJson = await runCli(['unresolved', '--format', 'json'], env);
  expect(JSON.parse(asJson.stdout)).toMatchObject([{ paymentId: id, attempts: 1 }]);

  const word = wordOn(id);
  const requested = await runCli(word, env);
  expect(requested).toMatchObject({
    code: 0,
    stdout: `${id}  create declined: requested by jane, still PENDING\n`,
  });
  const approval = `payments resolve ${id} --outcome declined --operation op_`;
  expect(requested.stderr).toContain(approval);
  expect((await runCli(['unresolved'], env)).stderr).toContain(approval);
  const resolved = await runCli(word, john);
  expect(resolved).toMatchObject({
    code: 0,
    stdout: `${id}  create declined, now FAILED (revision 2)\n`,
  });
  const again = await runCli(word, env);
  expect([again.code, again.stdout]).toEqual([1, '']);
  expect(again.stderr).toContain('nothing is unresolved on this payment');
  expect(await runCli(['unresolved'], env)).toMatchObject({
    code: 0,
    stdout: '',
    stderr: `Nothing is unresolved.\nResolved by hand, not yet confirmed by the provider: ${id}\n`,
  });
});

test('gaps §16: two persons end a contradiction, after which the provider is not asked any more', async () => {
  const { a } = processes;
  a.faults.respondsToLookUps = false;
  a.faults.next('answer lost');
  const id = locatedId(await a.create());
  await until('a look-up has failed', () => a.side.unresolved.list()[0]?.attempts === 1);
  const word = wordOn(id);
  await runCli(word, env);
  expect((await runCli(word, john)).stderr).toContain('The provider is asked again');
  // A process that starts asks at once.
  (await processes.open()).side.startSweep();
  await until('it is contradicted', async () =>
    (await processes.state(id)).operations.some((o) => o.confirmation === 'CONTRADICTED'),
  );
  await runCli(word, env);
  expect(await runCli(word, john)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('create declined, now FAILED'),
    stderr: 'The contradiction is ended: the provider is not asked any more\n',
  });
  a.faults.respondsToLookUps = true;
});

test('an empty list of parked payments is exit code 0, a retry of a payment that is not parked is 1', async () => {
  const [list, retry] = await Promise.all([
    runCli(['parked', 'list'], env),
    runCli(['parked', 'retry', 'pay_1'], env),
  ]);
  expect(list).toMatchObject({ code: 0, stdout: '', stderr: 'No payment is parked.\n' });
  expect([retry.code, retry.stdout]).toEqual([1, '']);
  expect(retry.stderr).toContain('PAYMENT_NOT_FOUND');
});

test('a wrong outcome and no evidence are wrong usage: exit code 2', async () => {
  const maybe = await runCli(['resolve', 'pay_1', '--outcome', 'maybe'], env);
  expectError(maybe, 2, 'approved, declined');
});
