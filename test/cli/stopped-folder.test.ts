/** `--data`: the auditor's verbs on a data folder whose service is stopped, whole, killed or damaged. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { openStoppedFolder } from '../../cli/stopped-folder.ts';
import { asDataFolderRefused, openDataFolder } from '../../embedded/data-folder.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { openAuditStory } from '../support/audit-story.ts';
import { expectError, expectOutput, runCli } from '../support/cli.ts';
import { freePort } from '../support/free-port.ts';
import { testOfLongRun } from '../support/long-run-share.ts';
import { runCliProcess } from '../support/service-processes.ts';
import { stripeDouble } from '../support/stripe-double/server.ts';
import { openRows } from '../support/tampering.ts';
import { folderOfTests } from '../support/temporary-folder.ts';

const folder = folderOfTests();

/** By another program: a process that closes a file that it has locked itself loses the lock. */
const copyOf = (from: string, name: string): string => {
  const to = join(folder, name);
  execFileSync('cp', ['-a', from, to]);
  return to;
};

const { service, story, read } = await openAuditStory();
/** As a killed service leaves it: half of the log is in the write-ahead log. */
const killed = copyOf(service.dataDir, 'killed');
/** What the service responds while it runs. */
const responses = new Map<string, unknown>();
for (const path of ['events', 'state?revision=1', 'explain?command=refund', 'verify'])
  responses.set(path, (await read(`/payments/${story}/${path}`)).json);
/** As a service leaves it that was stopped. */
const stopped = copyOf(killed, 'stopped');
await (await openSqliteEventStore({ file: join(stopped, 'events.sqlite') })).close();

/** The verbs know nothing but the folder: no address, no key. */
const cli = (data: string, ...args: string[]) =>
  runCli([...args, '--data', data], { DATA_DIR: join(folder, 'elsewhere'), NO_COLOR: '1' });

/** Every file with its bytes and its times. */
const stateOf = (path: string) =>
  readdirSync(path).map((name) => {
    const file = join(path, name);
    const { mtimeMs, ctimeMs, mode } = statSync(file);
    const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex');
    return { name, mtimeMs, ctimeMs, mode, sha256 };
  });

describe('a stopped data folder', () => {
  const PATHS = ['events', 'state?revision=1', 'explain?command=refund', 'verify'];

  test.each(['stopped', 'killed'])(
    'that was %s answers as the service did, unchanged',
    async (how) => {
      const data = how === 'stopped' ? stopped : killed;
      const before = stateOf(data);
      const client = await openStoppedFolder(data);
      for (const path of PATHS) {
        const route = `/audit/v1/payments/${story}/${path}`;
        const response = await client.get(route);
        expect([response.status, await response.json()]).toEqual([200, responses.get(path)]);
      }
      const whole = await (await client.get('/audit/v1/verify')).json();
      expect(whole).toMatchObject({ ok: true, guarantee: 'log', events: 6 });
      const reconciled = await (await client.post('/audit/v1/reconcile')).json();
      expect(reconciled).toMatchObject({ ok: true, operations: 3, entries: 3 });
      expect(stateOf(data)).toEqual(before);
    },
  );

  test('is read by every verb', async () => {
    const out = join(folder, 'stopped.jsonl');
    const whole = await cli(killed, 'verify');
    const exported = await cli(stopped, 'export', '--out', out);
    expectOutput(whole, /^intact {2}6 events/);
    expect(whole.stderr).toMatch(/events\.sqlite-wal holds pages/);
    expect(exported.code).toBe(0);
    expect(readFileSync(out, 'utf8')).toContain(story);
  });

  test.each(['stopped', 'killed'])('that was %s is unchanged by doctor', async (how) => {
    const data = how === 'stopped' ? stopped : killed;
    const before = stateOf(data);
    const env = { DATA_DIR: data, PORT: String(await freePort()), NO_COLOR: '1' };
    const { stdout } = await runCli(['doctor'], env);
    expect(stdout).toMatch(/^event store +SQLite, events\.sqlite +up$/m);
    expect(stdout).toMatch(/^read models +SQLite, read-models\.sqlite +up$/m);
    expect(stateOf(data)).toEqual(before);
  });

  test('the next steps of a reconciliation are verbs on the same folder', async () => {
    const data = copyOf(stopped, 'differing');
    const ledger = new DatabaseSync(join(data, 'provider-ledger.sqlite'));
    ledger.exec('DELETE FROM operations');
    ledger.close();
    const differs = await cli(data, 'reconcile');
    expectError(differs, 3, `payments events <payment> --data ${data} for each\n`);
  });

  test("with PROVIDER=stripe it is compared with Stripe's ledger, not the simulator's in the folder", async () => {
    const stripe = await stripeDouble();
    const settings = { STRIPE_SECRET_KEY: 'sk_test_stopped', STRIPE_API_URL: stripe.url };
    const args = ['reconcile', '--data', stopped, '--format', 'json'];
    const { code, stdout } = await runCli(args, { PROVIDER: 'stripe', ...settings });
    await stripe.close();
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { entries: 0 }]);
  });

  test('is refused in one line where a service holds the folder, or where there is no log', async () => {
    const held = await cli(service.dataDir, 'verify');
    expect([held.code, held.stderr]).toEqual([
      1,
      `payments: ${service.dataDir} is held by a running service: leave out --data to ask it\n`,
    ]);
    const empty = await cli(folder, 'verify');
    expectError(empty, 1, /^payments: \S+ holds no events\.sqlite; name the data folder/);
  });
});

describe('a damaged log', () => {
  let damaged: string;
  beforeAll(() => {
    damaged = copyOf(stopped, 'damaged');
    const { rows, write, close } = openRows(join(damaged, 'events.sqlite'));
    const dearer = (text: string) => text.replace('"amount":1500', '"amount":9500');
    write(rows.map((row) => (row.position === 4 ? { ...row, text: dearer(row.text) } : row)));
    close();
  });

  test('is refused by a start, which says how to look at it', async () => {
    const refused = await openDamaged();
    expect(refused).toMatch(/revision 3\): its text does not have its hash/);
    expect(refused).toContain(`next: payments verify --data ${damaged}`);
  });

  const openDamaged = async (): Promise<string> => {
    const file = join(copyOf(damaged, 'start'), 'events.sqlite');
    const error = await openSqliteEventStore({ file }).then(
      () => new Error('it was opened'),
      (reason: unknown) => reason,
    );
    return (asDataFolderRefused(error, damaged) as Error).message;
  };

  test('can be verified, read and exported: each verb names the place and ends with 3', async () => {
    const out = join(folder, 'damaged.jsonl');
    const verbs = [
      await cli(damaged, 'verify'),
      await cli(damaged, 'events', story),
      await cli(damaged, 'events', story, '--at', '2090-01-01T00:00:00Z'),
      await cli(damaged, 'explain', story, 'refund'),
      await cli(damaged, 'events', story, '--state'),
      await cli(damaged, 'export', '--out', out),
      await runCli(['events', story, '--file', out]),
    ];
    const place = `position 4 (stream payment-${story}, revision 3): its text does not have its hash`;
    for (const { code, stderr } of verbs) {
      expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining(place) });
    }
    const [, shown, upTo, explained, state] = verbs.map(({ stdout }) => stdout);
    expect(shown).toMatch(/r3 +#4 .* DOES NOT VERIFY: its text/);
    expect(shown).toMatch(/r5 +#6 +PaymentRefunded +5\.00 USD/);
    expect(upTo).toBe(shown);
    expect(explained).toMatch(/^refund refused: SERVICE_UNAVAILABLE/);
    expect(state).toBe('');
    const events = readFileSync(out, 'utf8').trimEnd().split('\n');
    expect(events.length).toBeGreaterThan(5);
    expect(existsSync(`${out}.manifest.json`)).toBe(true);
  });

  testOfLongRun('is verified by a process that ends by itself', async () => {
    const { code } = await runCliProcess(['verify', '--data', damaged]);
    expect(code).toBe(3);
  });

  test('whose pages are gone is written out as far as it can be read', async () => {
    const torn = copyOf(stopped, 'torn');
    const file = join(torn, 'events.sqlite');
    const bytes = readFileSync(file);
    writeFileSync(file, tornAfter(bytes, 'PaymentCaptured'));
    const out = join(folder, 'torn.jsonl');
    const verified = await cli(torn, 'verify');
    const exported = await cli(torn, 'export', '--out', out);
    for (const { code, stderr } of [verified, exported]) {
      expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining('malformed') });
    }
  });
});

const PAGE_BYTES = 4096;
/** A file whose page with this text is overwritten. */
const tornAfter = (bytes: Buffer, text: string): Buffer => {
  const page = Math.floor(bytes.indexOf(text) / PAGE_BYTES) * PAGE_BYTES;
  return Buffer.from(bytes).fill(0xff, page, page + PAGE_BYTES);
};

test('while a folder is read, no service starts on it', async () => {
  const data = copyOf(stopped, 'read');
  await openStoppedFolder(data);
  expect(() => openDataFolder(data)).toThrow(
    /held by another running service, or read with --data/,
  );
});
