/** `--data`: the auditor's verbs on a data folder whose service is stopped, whole, killed or damaged. */
import { createHash } from 'node:crypto';
import { cpSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { openDataFolder } from '../../embedded/data-folder.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { type AuditStory, openAuditStory } from '../support/audit-story.ts';
import { runCli } from '../support/service.ts';
import { openRows } from '../support/tampering.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

// Each run of the command line is a process of its own.
jest.setTimeout(60_000);

const folder = temporaryFolder();
let story: string;
let service: AuditStory['service'];
let stop: AuditStory['stop'];
/** As a killed service leaves it: half of the log is in the write-ahead log. */
let killed: string;
/** As a service leaves it that was stopped. */
let stopped: string;

const copyOf = (from: string, name: string): string => {
  const to = join(folder.path, name);
  cpSync(from, to, { recursive: true });
  return to;
};

beforeAll(async () => {
  ({ service, story, stop } = await openAuditStory());
  killed = copyOf(service.dataDir, 'killed');
  stopped = copyOf(killed, 'stopped');
  await (await openSqliteEventStore({ file: join(stopped, 'events.sqlite') })).close();
});
afterAll(async () => {
  await stop();
  folder.remove();
});

/** The verbs know nothing but the folder: no address, no key. */
const cli = (data: string, ...args: string[]) =>
  runCli([...args, '--data', data], { DATA_DIR: join(folder.path, 'elsewhere'), NO_COLOR: '1' });

/** Every file with its bytes and its times. */
const stateOf = (path: string) =>
  readdirSync(path).map((name) => {
    const file = join(path, name);
    const { mtimeMs, ctimeMs, mode } = statSync(file);
    const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex');
    return { name, mtimeMs, ctimeMs, mode, sha256 };
  });

describe('F13: the verbs of an auditor on a stopped data folder', () => {
  test.each(['stopped', 'killed'])('answer as the service did, of one that was %s', async (how) => {
    const data = how === 'stopped' ? stopped : killed;
    const out = join(folder.path, `${how}.jsonl`);
    const before = stateOf(data);
    const [events, state, explained, whole, one, exported, reconciled] = await Promise.all([
      cli(data, 'events', story),
      cli(data, 'events', story, '--state', '--at', '1'),
      cli(data, 'explain', story, 'refund'),
      cli(data, 'verify'),
      cli(data, 'verify', story),
      cli(data, 'export', '--out', out),
      cli(data, 'reconcile'),
    ]);
    expect(events.stdout).toMatch(/r5 +#6 +PaymentRefunded +5\.00 USD +CAPTURED +tester/);
    expect(state.stdout).toMatch(/AUTHORIZED {2}25\.00 USD/);
    expect(explained.stdout).toMatch(/^refund of 10\.00 USD would be allowed/);
    expect(whole.stdout).toMatch(/^intact {2}\d+ events, head [0-9a-f]{64} {2}\(one chain/);
    expect(one.stdout).toMatch(/^intact {2}6 events/);
    expect(readFileSync(out, 'utf8')).toContain(story);
    expect(reconciled.stdout).toMatch(/^log and provider agree: 3 operations, 3 ledger entries/);
    const codes = [events, state, explained, whole, one, exported, reconciled].map((r) => r.code);
    expect(codes).toEqual([0, 0, 0, 0, 0, 0, 0]);
    expect(stateOf(data)).toEqual(before);
    if (how === 'killed') expect(whole.stderr).toMatch(/events\.sqlite-wal holds pages/);
  });

  test('is refused in one line where a service holds the folder, or where there is no log', async () => {
    const held = await cli(service.dataDir, 'verify');
    expect([held.code, held.stderr]).toEqual([
      1,
      `payments: ${service.dataDir} is held by a running service: leave out --data to ask it\n`,
    ]);
    const empty = await cli(folder.path, 'verify');
    expect([empty.code, empty.stderr]).toEqual([
      1,
      expect.stringMatching(/^payments: \S+ holds no events\.sqlite; name the data folder/),
    ]);
  });
});

describe('F13: a damaged log', () => {
  let damaged: string;
  beforeAll(() => {
    damaged = copyOf(stopped, 'damaged');
    const { rows, write, close } = openRows(join(damaged, 'events.sqlite'));
    const dearer = (text: string) => text.replace('"amount":1500', '"amount":9500');
    write(rows.map((row) => (row.position === 4 ? { ...row, text: dearer(row.text) } : row)));
    close();
  });

  test('is refused by a start, which says how to look at it', async () => {
    const refused = await runCli([], {}).then(() => openDamaged());
    expect(refused).toMatch(/revision 3\): its text does not have its hash/);
    expect(refused).toContain(`next: payments verify --data ${damaged}`);
  });

  const openDamaged = async (): Promise<string> => {
    const { asDataFolderRefused } = await import('../../embedded/data-folder.ts');
    const file = join(copyOf(damaged, 'start'), 'events.sqlite');
    const error = await openSqliteEventStore({ file }).then(
      () => new Error('it was opened'),
      (reason: unknown) => reason,
    );
    return (asDataFolderRefused(error, damaged) as Error).message;
  };

  test('can be verified, read and exported: each verb names the place and ends with 3', async () => {
    const out = join(folder.path, 'damaged.jsonl');
    const verbs = await Promise.all([
      cli(damaged, 'verify'),
      cli(damaged, 'verify', story),
      cli(damaged, 'events', story),
      cli(damaged, 'events', story, '--state'),
      cli(damaged, 'explain', story, 'refund'),
      cli(damaged, 'export', '--out', out),
    ]);
    const place = `position 4 (stream payment-${story}, revision 3): its text does not have its hash`;
    for (const { code, stderr } of verbs) {
      expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining(place) });
    }
    expect(verbs[2]?.stdout).toMatch(/r5 +#6 +PaymentRefunded +5\.00 USD/);
    const events = readFileSync(out, 'utf8').trimEnd().split('\n');
    expect(events.length).toBeGreaterThan(5);
    expect(existsSync(`${out}.manifest.json`)).toBe(true);
  });

  test('whose pages are gone is written out as far as it can be read', async () => {
    const torn = copyOf(stopped, 'torn');
    const file = join(torn, 'events.sqlite');
    const bytes = readFileSync(file);
    writeFileSync(file, tornAfter(bytes, 'PaymentCaptured'));
    const out = join(folder.path, 'torn.jsonl');
    const [verified, exported] = await Promise.all([
      cli(torn, 'verify'),
      cli(torn, 'export', '--out', out),
    ]);
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

test('F13: while a folder is read, no service starts on it', async () => {
  const { openStoppedFolder } = await import('../../cli/stopped-folder.ts');
  const data = copyOf(stopped, 'read');
  await openStoppedFolder(data);
  expect(() => openDataFolder(data)).toThrow(/held by another running service, or read with --data/);
});
