/** What `payments export` writes, and what it never replaces; what `events --file` shows of an export. */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, describe, expect, test } from '@jest/globals';
import { withManifest } from '../../audit/export.ts';
import { readExportLine } from '../../audit/export-lines.ts';
import { openFileSource } from '../../cli/events-of-file.ts';
import { writeExport } from '../../cli/export.ts';
import { manifestFileOf, verifyFile } from '../../cli/export-file.ts';
import { runCli } from '../support/cli.ts';
import {
  exportLog,
  openFilledLog,
  openRows,
  rewritten,
  wholeExport,
} from '../support/tampering.ts';

const log = await openFilledLog();
afterAll(() => log.close());

describe('an export', () => {
  test('has its manifest before it has its file, so that no crash leaves it without', async () => {
    const out = join(log.folder, 'taken');
    mkdirSync(join(out, 'by-a-folder'), { recursive: true });
    await expect(exportLog(log, out)).rejects.toThrow();
    expect(existsSync(manifestFileOf(out))).toBe(true);
  });
});

describe('gaps §25: an export that was cut off is told as that, and leaves no file', () => {
  const out = join(log.folder, 'cut.jsonl');
  const whole = async (): Promise<string[]> => {
    const { texts } = withManifest(await wholeExport(log.store), undefined);
    const parts = await Readable.from(texts(new AbortController().signal)).toArray();
    return parts.join('').split(/(?<=\n)/);
  };
  const write = async (lines: readonly string[]) => {
    const body = (async function* () {
      yield Buffer.from(lines.join(''));
    })();
    return writeExport({ body, headers: new Headers({ 'export-completeness': 'log' }) }, out);
  };
  const CUT = 'the export was cut off before its manifest; start it again';

  test.each<[what: string, change: (lines: string[]) => string[], why: string]>([
    ['its last line', (lines) => lines.slice(0, -1), CUT],
    ['the end of its last line', (lines) => lines.with(-1, (lines.at(-1) ?? '').trimEnd()), CUT],
    ['all but a part of a line', ([line = '']) => [line.slice(0, 50)], CUT],
    ['everything', () => [], CUT],
    ['a line before the last two', (lines) => lines.toSpliced(-3, 1), 'not what was exported'],
    ['its beginning', ([, ...lines]) => lines, 'not what was exported'],
    ['nothing, and has a part of a line more', (lines) => [...lines, '{"po'], CUT],
    ['nothing, and has a line more', (lines) => [...lines, '{}\n'], 'is not an export'],
  ])('given one that lacks %s', async (_what, change, why) => {
    await expect(write(change(await whole()))).rejects.toThrow(why);
    expect(readdirSync(log.folder).filter((name) => name.startsWith('cut.jsonl'))).toEqual([]);
  });

  test('given one that is whole, it is written', async () => {
    expect((await write(await whole())).manifest.count).toBe(36);
    rmSync(out);
    rmSync(manifestFileOf(out));
  });

  test('given a store that fails in the middle, or a reader that has left, it never gets its last line', async () => {
    const { scan: _, ...stored } = log.store.stored;
    const readAll: typeof stored.readAll = async (from, _limit, upTo) => {
      if (from !== null) throw new Error('the second page fails');
      return stored.readAll(from, 20, upTo);
    };
    const store = { ...log.store, stored: { ...stored, readAll } };
    await expect(exportLog({ ...log, store }, out)).rejects.toThrow('the second page fails');
    const { texts } = withManifest(await wholeExport(log.store), undefined);
    await expect(Readable.from(texts(AbortSignal.abort())).toArray()).rejects.toThrow(
      'was aborted',
    );
    expect(existsSync(out)).toBe(false);
  });
});

describe('a forced export replaces plain files alone, and says so before any request', () => {
  const MADE: Record<string, (path: string) => void> = {
    'a folder': (path) => mkdirSync(path),
    'a pipe': (path) => execFileSync('mkfifo', [path]),
    'a link to a device': (path) => symlinkSync('/dev/null', path),
    'a link that leads nowhere': (path) => symlinkSync('nowhere', path),
  };

  test.each(Object.entries(MADE))('%s stays as it is', async (name, make) => {
    const out = join(log.folder, name);
    make(out);
    const before = lstatSync(out).ino;
    for (const force of [['--force'], []]) {
      const { code, stderr } = await runCli(['export', '--out', out, ...force]);
      expect([code, stderr]).toEqual([
        1,
        `payments: ${out} is no plain file to be replaced; choose another --out\n`,
      ]);
    }
    expect(lstatSync(out).ino).toBe(before);
  });
});

describe('an export of a log that was changed', () => {
  test('holds every event, also a text that is no JSON, and names the first break', async () => {
    const { rows, write, restore, close } = openRows(log.file);
    const text = 'no "JSON"\n at all';
    write(rows.map((row) => (row.position === 8 ? { ...row, text } : row)));
    const out = join(log.folder, 'changed.jsonl');
    const { manifest, breaks } = await exportLog(log, out);
    restore();
    close();
    const place = { position: '8', stream: 'payment-pay_1', revision: 1 };
    const reason = 'its text does not have its hash';
    expect(breaks).toMatchObject({ count: 1, named: [{ ...place, reason }], acknowledged: [] });
    expect(manifest.count).toBe(36);
    const lines = readFileSync(out, 'utf8').trimEnd().split('\n').map(readExportLine);
    expect(lines).toHaveLength(36);
    expect(lines[7]).toMatchObject({ ...place, text });
    expect(await verifyFile(out)).toMatchObject({
      ok: false,
      broken: { line: 8, ...place, reason },
    });
  });
});

describe('the events of a payment in an export', () => {
  test('whose amount was changed there are marked, and no state is shown after it', async () => {
    const out = join(log.folder, 'log.jsonl');
    await exportLog(log, out);
    const whole = readFileSync(out, 'utf8');
    const source = await openFileSource('pay_2', out);
    expect((await source.timeline()).broken).toBeUndefined();
    expect(await source.state({ revision: '5' })).toMatchObject({
      payment: { status: 'CAPTURED' },
    });
    const changed = (line: string): string =>
      line.includes('"payment-pay_2"') && line.includes('"revision":3,')
        ? line.replace(/"amount":\d+/, '"amount":9900')
        : line;
    writeFileSync(out, whole.split('\n').map(changed).join('\n'));
    const forged = await openFileSource('pay_2', out);
    expect(await forged.timeline()).toMatchObject({
      broken: { stream: 'payment-pay_2', revision: 3, reason: 'its text does not have its hash' },
    });
    await expect(forged.state({ revision: '5' })).rejects.toMatchObject({
      exitCode: 3,
      message: expect.stringContaining('(stream payment-pay_2, revision 3): its text does not'),
    });
    expect(await forged.state({ revision: '1' })).toMatchObject({ revision: 1 });
  });

  test('of which one cannot be read have no state, also no earlier one in its place', async () => {
    const out = join(log.folder, 'unreadable.jsonl');
    const { rows, write, restore, close } = openRows(log.file);
    const unknownType = (text: string) => text.replace('"PaymentRefunded"', '"PaymentTeleported"');
    write(rewritten(rows, rows.length - 1, unknownType));
    await exportLog(log, out);
    restore();
    close();
    const { timeline, state } = await openFileSource('pay_5', out);
    const { events, broken } = await timeline();
    const reason = 'it cannot be read: has the unknown type PaymentTeleported';
    expect([events.length, broken?.reason]).toEqual([6, reason]);
    await expect(state({})).rejects.toMatchObject({
      exitCode: 3,
      message: `position 36 (stream payment-pay_5, revision 5): ${reason}`,
    });
  });

  test('that begins in the middle of its stream are verified from there on, and have no state', async () => {
    const out = join(log.folder, 'part.jsonl');
    await exportLog(log, out, '12');
    expect((await (await openFileSource('pay_2', out)).timeline()).broken).toBeUndefined();
    const before = ['--at', '2020-01-01T00:00:00Z'];
    for (const args of [['--state'], ['--diff', '--at', '3'], ['--state', ...before]]) {
      const { code, stdout, stderr } = await runCli(['events', 'pay_2', '--file', out, ...args]);
      expect([code, stdout, stderr]).toEqual([
        1,
        '',
        `payments: ${out} holds the payment from revision 2 on, and its state is made of every event; next: payments export pay_2 --out <file>\n`,
      ]);
    }
    writeFileSync(out, readFileSync(out, 'utf8').replace(/"amount":\d+/g, '"amount":1'));
    const forged = await openFileSource('pay_0', out);
    expect((await forged.timeline()).broken).toMatchObject({ revision: 2 });
  });

  const LAST = '"stream":"payment-pay_5"';
  const CHANGES: [string, (lines: string[]) => string[]][] = [
    [
      'has a space more in the line of its last event',
      (lines) => lines.with(-1, (lines.at(-1) ?? '').replace('"position":', '"position": ')),
    ],
    [
      'is cut in the middle of that line',
      (lines) => lines.with(-1, (lines.at(-1) ?? '').slice(0, 200)),
    ],
    [
      'names another payment in that line',
      (lines) => lines.with(-1, (lines.at(-1) ?? '').replace(LAST, LAST.replace('5', '4'))),
    ],
    ['lacks that line', (lines) => lines.slice(0, -1)],
    ['lacks an event of another payment', (lines) => lines.toSpliced(-3, 1)],
  ];

  test.each(CHANGES)(
    'of a file that %s are shown up to there, exit code 3',
    async (_what, change) => {
      const out = join(log.folder, 'changed-file.jsonl');
      await exportLog(log, out);
      const lines = readFileSync(out, 'utf8').trimEnd().split('\n');
      expect(lines.at(-1)).toContain(LAST);
      writeFileSync(out, `${change(lines).join('\n')}\n`);
      const { code, stdout, stderr } = await runCli(['events', 'pay_5', '--file', out]);
      expect([code, stderr]).toEqual([3, expect.stringContaining(`of ${out}: `)]);
      expect(stdout).toContain('r4');
      expect(stdout).not.toContain('REFUNDED');
      const source = await openFileSource('pay_5', out);
      await expect(source.state({})).rejects.toMatchObject({ exitCode: 3 });
      expect(await source.state({ revision: '4' })).toMatchObject({ revision: 4 });
      expect((await verifyFile(out)).ok).toBe(false);
    },
  );
});
