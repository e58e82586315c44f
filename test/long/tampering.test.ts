import { describe, expect, test } from '@jest/globals';
import { verifyFile } from '../../cli/verify-file.ts';
import { newSeed, randomOf } from '../support/random.ts';
import { openFilledLog, unnoticedInExport, unnoticedInRows } from '../support/tampering.ts';

const CHANGES = 1500;
const seed = newSeed();

describe(`tampering (docs/audit.md; seed ${seed})`, () => {
  test(`${CHANGES} changes to an export, none unnoticed`, async () => {
    const log = await openFilledLog();
    expect(await unnoticedInExport(log, verifyFile, randomOf(seed), CHANGES)).toEqual([]);
    await log.close();
  }, 300_000);

  test(`${CHANGES} changes to the rows of the log, none unnoticed`, async () => {
    const log = await openFilledLog();
    expect(await unnoticedInRows(log, randomOf(seed), CHANGES)).toEqual([]);
    await log.close();
  }, 300_000);
});
