import { describe, expect, test } from '@jest/globals';
import { verifyFile } from '../../cli/verify-file.ts';
import { newSeed, randomOf } from '../support/random.ts';
import { openFilledLog, unnoticedInExport, unnoticedInRows } from '../support/tampering.ts';

const CHANGES = 1500;
const seed = newSeed();

describe(`tampering (docs/audit.md; seed ${seed})`, () => {
  test(`each of ${CHANGES} changes to an export is noticed`, async () => {
    const log = await openFilledLog();
    expect(await unnoticedInExport(log, verifyFile, randomOf(seed), CHANGES)).toEqual([]);
    await log.close();
  }, 300_000);

  test(`each of ${CHANGES} changes to the rows of the event log is noticed`, async () => {
    const log = await openFilledLog();
    expect(await unnoticedInRows(log, randomOf(seed), CHANGES)).toEqual([]);
    await log.close();
  }, 300_000);
});
