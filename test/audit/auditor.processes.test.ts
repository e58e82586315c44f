/** The commands of an auditor, run against a started service (docs/audit.md). */
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { NOT_GOOD } from '../../audit/manifest.ts';
import { expectError, expectOutput, runCli } from '../support/cli.ts';
import { freePort } from '../support/free-port.ts';
import { startInProcess } from '../support/service-in-process.ts';
import { NODE, ROOT } from '../support/service-processes.ts';
import { folderOfTests } from '../support/temporary-folder.ts';
import { STOP_MS_MAX } from '../support/time-bounds.ts';
import { until, within } from '../support/until.ts';

const PAYMENTS = '/api/v1/payments';
const example = (name: string): object =>
  JSON.parse(readFileSync(join(ROOT, 'examples', name), 'utf8'));

// It ends before its folder does.
afterAll(() => service[Symbol.asyncDispose]());
const folder = folderOfTests();
const port = await freePort();
const start = () => startInProcess({ dataDir: join(folder, 'data'), env: { PORT: String(port) } });
const cli = (...args: string[]) =>
  runCli(args, { DATA_DIR: join(folder, 'data'), PORT: String(port) });
const pay = async (): Promise<string> =>
  (await service.post(PAYMENTS, example('payment.json'))).json.paymentId;

let service = await start();
const story = await pay();
await service.post(`${PAYMENTS}/${story}/capture`, { captureAmount: 1500 });

describe('docs/audit.md: one command for each question', () => {
  test('which payment was it? find', async () => {
    await until('the read models hold it', async () => {
      const { stdout } = await cli('find', '4242', '--format', 'json');
      return JSON.parse(stdout).payments[0]?.status === 'CAPTURED';
    });
    const { code, stdout } = await cli('find', '4242', '--status', 'CAPTURED');
    expect(code).toBe(0);
    expect(stdout).toContain(story);
  });

  test('what happened to it? events', async () => {
    const { stdout } = await cli('events', story);
    expect(stdout.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/r0 +#1 +PaymentCreated +25\.00 USD +PENDING +m_demo +\.\.\w{8}$/),
      expect.stringMatching(/r1 +#2 +PaymentAuthorized/),
      expect.stringMatching(/r2 +#3 +PaymentCaptureRequested +15\.00 USD/),
      expect.stringMatching(/r3 +#4 +PaymentCaptured +15\.00 USD +CAPTURED +m_demo +\.\.\w{8}$/),
    ]);
  });

  test('what was it worth then, and what has changed since? events --at --state --diff', async () => {
    const { stdout } = await cli('events', story, '--at', '1', '--state', '--diff');
    expect(stdout).toContain('AUTHORIZED  25.00 USD');
    expect(stdout).toMatch(/^capturedAmount +0 +-> +1500$/m);
  });

  test('what had happened to it before it was made? events --at says that there was nothing', async () => {
    const { code, stdout, stderr } = await cli('events', story, '--at', '2020-01-01T00:00:00Z');
    expect([code, stdout, stderr]).toEqual([0, '', 'The payment has no event up to then.\n']);
  });

  test('why would this refund be refused? explain', async () => {
    const { stdout } = await cli('explain', story, 'refund', '--amount', '1501');
    expect(stdout).toContain('refused: REFUND_NOT_ALLOWED');
    expect(stdout).toMatch(/r3 +#4 +PaymentCaptured +captured 15\.00 USD/);
  });

  test('does the provider agree? reconcile', async () => {
    expectOutput(await cli('reconcile'), 'log and provider agree: 2 ');
  });

  test('has anyone changed the log? export, which replaces no file, verify --file, verify --all against its head', async () => {
    const file = join(folder, 'log.jsonl');
    expect((await cli('export', '--out', file)).code).toBe(0);
    const again = await cli('export', '--out', file);
    expect([again.code, again.stderr]).toEqual([
      1,
      `payments: ${file} exists already, and an export replaces nothing; choose another --out, or add --force\n`,
    ]);
    expect((await cli('export', '--out', file, '--force')).code).toBe(0);
    const whole = await cli('verify', '--all', '--manifest', `${file}.manifest.json`);
    expectOutput(whole, /^intact .*\nkept head {2}#\d+ found: the log holds it as exported$/m);
    const mistaken = await cli('verify', '--all', '--manifest', file);
    expect([mistaken.code, mistaken.stderr]).toEqual([
      2,
      `payments: ${file} is no manifest; name ${file}.manifest.json\n`,
    ]);
    const manifest = JSON.parse(readFileSync(`${file}.manifest.json`, 'utf8'));
    const foreign = join(folder, 'foreign.manifest.json');
    const head = { ...manifest.head, logHash: 'a'.repeat(64) };
    writeFileSync(foreign, JSON.stringify({ ...manifest, head, log: crypto.randomUUID() }));
    const wrong = await cli('verify', '--all', '--manifest', foreign);
    expectError(wrong, 3, `${NOT_GOOD}, and the kept head is of another log`);

    // No server and no store: nothing but the two files.
    const alone = (path: string) => runCli(['verify', '--file', path], { DATA_DIR: folder });
    expect((await alone(file)).code).toBe(0);
    writeFileSync(file, readFileSync(file, 'utf8').replace('"amount":1500', '"amount":1501'));
    const changed = await alone(file);
    expect(changed.code).toBe(3);
    expect(changed.stderr).toContain(`line 3, position 3 (stream payment-${story}, revision 2)`);
  });
});

describe('exit codes', () => {
  test('2 for wrong usage; 1 with what to do next where no service answers', async () => {
    expect((await cli('verify')).code).toBe(2);
    for (const target of ['pay_1', '--read-models']) {
      const kept = await cli('verify', target, '--manifest', 'kept.json');
      expectError(kept, 2, '--manifest goes with --all');
    }
    const closed = await runCli(['find'], { PAYMENTS_URL: `http://127.0.0.1:${await freePort()}` });
    expect(closed.code).toBe(1);
    expect(closed.stderr).toMatch(/^payments: no service answers at .*; start it with npm start/);
    const unknown = await cli('events', 'pay_nope');
    expect([unknown.code, unknown.stderr]).toEqual([
      1,
      'payments: PAYMENT_NOT_FOUND: There is no such payment; look for it: payments find\n',
    ]);
  });
});

describe('payments listen', () => {
  test('prints each event once over a restart of the service', async () => {
    const child = spawn(NODE, ['cli/payments.mjs', 'listen', '--format', 'json'], {
      cwd: ROOT,
      env: { PATH: process.env.PATH, DATA_DIR: join(folder, 'data'), PORT: String(port) },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (part) => {
      stdout += part;
    });
    child.stderr.setEncoding('utf8').on('data', (part) => {
      stderr += part;
    });
    const closed = new Promise((resolve) => child.once('close', resolve));
    const events = () =>
      stdout
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line));
    const untilPrinted = (paymentId: string) =>
      until(`an event of ${paymentId} is printed`, () =>
        events().some((event) => event.paymentId === paymentId),
      );

    try {
      await until('it listens', () => stderr.includes('listening at'));
      const before = await pay();
      await untilPrinted(before);
      // An open stream does not hold the stop up.
      await within(STOP_MS_MAX, service[Symbol.asyncDispose]);
      service = await start();
      const after = await pay();
      await untilPrinted(after);
    } finally {
      child.kill();
      await closed;
    }

    expect(stderr).toMatch(/reconnected, resumed at #\d+/);
    const positions = events().map(({ position }) => Number(position));
    const [first = 0] = positions;
    expect(positions).toEqual(positions.map((_, n) => first + n));
  });
});
