/** L3: every change to an export and to the rows of the event log is noticed (docs/audit.md). */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, describe, expect, test } from '@jest/globals';
import { readExportLine } from '../../audit/export-lines.ts';
import { manifestFileOf, verifyFile } from '../../cli/export-file.ts';
import { openSqliteForReading } from '../../shared/event-store/sqlite/event-store.ts';
import { timesOf } from '../support/long-run-share.ts';
import { randomOf } from '../support/random.ts';
import {
  exportLog,
  FILE_CHANGE_NAMES,
  openFilledLog,
  openRows,
  ROW_CHANGE_NAMES,
  unnoticedInExport,
  unnoticedInRows,
  verifyWhole,
} from '../support/tampering.ts';

const log = await openFilledLog();
afterAll(() => log.close());

describe(`L3: an export`, () => {
  test('is intact as it was written, with the head of its manifest', async () => {
    const verified = await verifyFile((await exportLog(log)).out);
    expect(verified).toMatchObject({ ok: true, events: 36, completeness: 'log' });
    expect(verified.head?.position).toBe('36');
  });

  test('that is changed anywhere is not intact, and the line is named', async () => {
    const changes = timesOf(1_500, 6 * FILE_CHANGE_NAMES.length);
    expect(await unnoticedInExport(log, verifyFile, randomOf(), changes)).toEqual([]);
  });

  test('that is cut together with its manifest no longer fits a head or chain kept elsewhere', async () => {
    const { out: file } = await exportLog(log);
    const manifest = JSON.parse(readFileSync(manifestFileOf(file), 'utf8'));
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, -2);
    const last = readExportLine(lines.at(-1) ?? '');
    if (last === undefined) throw new Error('an export without lines');
    const cut = `${lines.join('\n')}\n`;
    writeFileSync(file, cut);
    const { position, stream, revision, hash, logHash, chain } = last;
    const fitted = {
      ...manifest,
      count: 35,
      head: { position, stream, revision, hash, logHash },
      chain,
      bytes: Buffer.byteLength(cut),
      sha256: createHash('sha256').update(cut).digest('hex'),
    };
    const isOk = async (kept: object): Promise<boolean> => {
      writeFileSync(manifestFileOf(file), JSON.stringify({ ...fitted, ...kept }));
      return (await verifyFile(file)).ok;
    };
    // A manifest that is written anew as a whole passes, so a copy has to be kept elsewhere.
    expect(await isOk({})).toBe(true);
    expect(await isOk({ head: manifest.head })).toBe(false);
    expect(await isOk({ chain: manifest.chain })).toBe(false);
  });

  test('without a manifest cannot be verified: exit code 3', async () => {
    const { out: file } = await exportLog(log);
    await expect(verifyFile(file, `${file}.other.json`)).rejects.toMatchObject({ exitCode: 3 });
  });
});

describe(`L3: the rows of the event log`, () => {
  test.each<[what: string, hasKept: boolean, changes: number, passing: RegExp]>([
    ['are not intact by a kept head', true, timesOf(1_500, 4 * ROW_CHANGE_NAMES.length), /^$/],
    [
      'pass without a kept head only where the log is written anew to its end',
      false,
      2 * ROW_CHANGE_NAMES.length,
      // In the last row the second is the same change.
      /^(everything from a row on written anew|an amount, with its hash and its link in the log), row/,
    ],
  ])('that are changed anywhere %s', async (_what, hasKept, changes, passing) => {
    const unnoticed = await unnoticedInRows(log, randomOf(), changes, hasKept);
    expect(unnoticed.filter((what) => !passing.test(what))).toEqual([]);
    expect(await verifyWhole(log.store)).toMatchObject({ ok: true, guarantee: 'log', events: 36 });
  });

  test('a cut tail is a break while the service runs that wrote it, and none after a start', async () => {
    const rows = openRows(log.file);
    rows.write(rows.rows.slice(0, 30), rows.streams);
    const running = await verifyWhole(log.store);
    const started = await openSqliteForReading(`file://${log.file}?mode=ro`);
    const anew = await verifyWhole(started);
    await started.close();
    rows.restore();
    rows.close();
    expect(running).toMatchObject({ ok: false, events: 30, broken: { position: '36' } });
    expect(running.broken?.reason).toBe(
      'the log ended here when this began, and its last events are gone',
    );
    expect(anew).toMatchObject({ ok: true, events: 30 });
  });
});
