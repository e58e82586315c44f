/**
 * The files of a data folder, damaged at random: each damaged folder gives the right responses, or an
 * error that names the damage, or is refused at the start.
 */
import { expect, test } from '@jest/globals';
import { makeWholeFolder, meetDamage } from '../support/damage.ts';
import { newSeed, randomOf } from '../support/random.ts';

const IMAGES = Number(process.env.TEST_IMAGES ?? 208);
const PAYMENTS = 40;

test(`none of ${IMAGES} damaged data folders gives a wrong response without an error`, async () => {
  const random = randomOf(newSeed());
  const whole = await makeWholeFolder(PAYMENTS);
  const counts = { right: 0, refused: 0, named: 0, wrong: 0 };
  const wrong: string[] = [];
  const nameless: string[] = [];
  for (let n = 0; n < IMAGES; n += 1) {
    const { what, check } = await meetDamage(whole, n, random);
    counts[check.kind] += 1;
    if (check.kind === 'wrong') wrong.push(`${what}: ${check.line}`);
    if (check.kind === 'refused' && !/events\.sqlite: |read models' checkpoint/.test(check.line))
      nameless.push(`${what}: ${check.line}`);
  }
  whole.remove();
  process.stderr.write(
    `damaged files: seed ${random.seed}, ${IMAGES} images, ${counts.right} right, ` +
      `${counts.named} named, ${counts.refused} refused at the start, ${counts.wrong} silently wrong\n`,
  );
  expect(wrong).toEqual([]);
  expect(nameless).toEqual([]);
  expect(Math.min(counts.right, counts.named, counts.refused)).toBeGreaterThan(0);
}, 600_000);
