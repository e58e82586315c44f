/** What the read models' own file must withstand: it can always be filled again from the log. */
import {
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeEach, describe, expect, jest, test } from '@jest/globals';
import { foldReadModel } from '../../shared/payment/fold.ts';
import type { PaymentReadModel } from '../../shared/payment/state.ts';
import { WHOLE_FILE } from '../../shared/read-models/damage.ts';
import { ReadModelsLost, ReadModelsUnavailable } from '../../shared/read-models/errors.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { placed, wholeLife } from '../support/payment-events.ts';
import { READ_MODEL_SECRETS, readModelsAt } from '../support/read-models-here.ts';
import { folderOfEachTest } from '../support/temporary-folder.ts';

const whole = (paymentId: string): PaymentReadModel => {
  const readModel = foldReadModel(placed(wholeLife(paymentId)));
  if (readModel === undefined) throw new Error('no read model');
  return readModel;
};
const fill = (readModels: ReadModels, count: number): Promise<void> =>
  readModels.apply(
    Array.from(
      { length: count },
      (_, n) => ({ kind: 'readModel', readModel: whole(`pay_${n}`) }) as const,
    ),
    null,
    'p1',
  );

describe('the file of the read models', () => {
  const folder = folderOfEachTest();
  let file: string;
  const warn = jest.fn();
  const open = (): ReadModels => readModelsAt(file, { logger: { warn } });
  const filled = async (count: number): Promise<void> => {
    const readModels = open();
    await fill(readModels, count);
    await readModels.close();
  };
  const expectEmptyAndUsable = async (): Promise<void> => {
    const readModels = open();
    expect(await readModels.checkpoint()).toBeNull();
    expect(await readModels.getAny('pay_0')).toBeUndefined();
    await fill(readModels, 1);
    expect(await readModels.getAny('pay_0')).toBeDefined();
    await readModels.close();
  };

  beforeEach(() => {
    warn.mockClear();
    file = join(folder.path, 'read models.db');
  });

  test('is readable by its owner alone, its log beside it too', async () => {
    const readModels = open();
    await fill(readModels, 1);
    for (const name of [file, `${file}-wal`, `${file}-shm`])
      expect(statSync(name).mode & 0o777).toBe(0o600);
    await readModels.close();
  });

  test('of another version, older or newer, is thrown away with a line in the log', async () => {
    for (const version of [1, 999_999]) {
      warn.mockClear();
      await filled(1);
      const db = new DatabaseSync(file);
      db.exec(`PRAGMA user_version = ${version}`);
      db.close();
      await expectEmptyAndUsable();
      expect(warn.mock.calls).toEqual([
        [
          { file, reason: expect.stringContaining(`it has the form ${version}, this version`) },
          expect.stringContaining('nothing is lost'),
        ],
      ]);
      rmSync(file);
    }
  });

  test('whose tables are not those of its version is thrown away', async () => {
    await filled(1);
    const db = new DatabaseSync(file);
    db.exec('DROP TABLE parked');
    db.close();
    await expectEmptyAndUsable();
    expect(warn).toHaveBeenCalledTimes(1);
  });

  test.each([
    ['no database', () => Buffer.from('not a database, but long enough to look at'.repeat(100))],
    ['a damaged schema page', (b: Buffer) => b.fill(0xff, 100, 4096)],
    ['cut in half', (b: Buffer) => b.subarray(0, b.length / 2)],
    ['a damaged header', (b: Buffer) => b.fill(0x41, 0, 60)],
  ])('that is %s is thrown away with a line in the log', async (_, damage) => {
    await filled(50);
    writeFileSync(file, damage(readFileSync(file)));
    await expectEmptyAndUsable();
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn).toHaveBeenCalledWith(expect.anything(), expect.stringContaining('damaged'));
  });

  test.each([
    ['damaged', () => writeFileSync(file, readFileSync(file).fill(0xff, 11 * 4096)), 'malformed'],
    ['gone', () => ['', '-wal', '-shm'].map((end) => rmSync(file + end, { force: true })), 'open'],
    ['emptied', () => truncateSync(file), 'no such table'],
  ])(
    '%s while it is served is told once, and no other takes its place',
    async (_, harm, reason) => {
      await filled(500);
      const readModels = open();
      const noted: string[][] = [];
      readModels.onDamage((...one) => noted.push(one));
      harm();
      for (let n = 0; n < 2; n += 1)
        await expect(readModels.search({}, 500)).rejects.toThrow(ReadModelsLost);
      expect(noted).toEqual([[WHOLE_FILE, expect.stringContaining(reason)]]);
      expect(readModels.damaged()).toEqual([WHOLE_FILE]);
      expect(warn).not.toHaveBeenCalled();
      await readModels.close();
    },
  );

  test('written under a secret that is known no more, is thrown away with a line in the log', async () => {
    await filled(1);
    const [SECRET] = READ_MODEL_SECRETS;
    const another = readModelsAt(file, { secrets: ['the next one', SECRET], logger: { warn } });
    expect(await another.getAny('pay_0')).toBeDefined();
    await another.close();
    expect(warn).not.toHaveBeenCalled();
    const later = readModelsAt(file, { secrets: ['the next one'], logger: { warn } });
    expect(await later.checkpoint()).toBeNull();
    expect(warn.mock.calls).toMatchObject([
      [{ reason: 'it was written under another secret' }, expect.any(String)],
    ]);
    await later.close();
  });

  test('that cannot be opened after it has taken the place is opened once it can be', async () => {
    await filled(1);
    const readModels = open();
    const next = await readModels.openGeneration();
    // The file of the next generation leads nowhere for now.
    const volume = join(folder.path, 'volume');
    rmSync(`${file}.next`);
    rmSync(`${file}.next-wal`);
    symlinkSync(join(volume, 'new.db'), `${file}.next`);
    await expect(next.serve()).rejects.toBeInstanceOf(ReadModelsUnavailable);
    await next.end();
    await expect(readModels.getAny('pay_0')).rejects.toBeInstanceOf(ReadModelsUnavailable);
    mkdirSync(volume);
    expect(await readModels.checkpoint()).toBeNull();
    await fill(readModels, 1);
    expect(await readModels.getAny('pay_0')).toMatchObject({ revision: 5 });
    await readModels.close();
    await expect(readModels.getAny('pay_0')).rejects.toBeInstanceOf(ReadModelsUnavailable);
  });

  test('deleted while stopped, its log left behind, starts empty', async () => {
    const readModels = open();
    await fill(readModels, 3);
    const log = readFileSync(`${file}-wal`);
    await readModels.close();
    rmSync(file);
    writeFileSync(`${file}-wal`, log);
    await expectEmptyAndUsable();
  });

  test('that cannot be made is refused in one line', () => {
    const missing = join(folder.path, 'nowhere', 'read models.db');
    expect(() => readModelsAt(missing)).toThrow(/^the file of the read models cannot be used: .+$/);
  });
});
