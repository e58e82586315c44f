/** gaps §21: the shopper authenticates in the moment of the fence; test/long takes 200 of each driver. */
import { describe, expect, test } from '@jest/globals';
import {
  type Authenticating,
  brokenRaces,
  overSimulator,
  overStripe,
  raceShoppers,
} from '../../support/authentication-races.ts';
import { timesOf } from '../../support/long-run-share.ts';
import { newSeed, type Random, randomOf } from '../../support/random.ts';

const seed = newSeed();
const TIMES = timesOf(200, 20);

describe(`seed ${seed}`, () => {
  test.each<[string, (random: Random) => Promise<Authenticating>]>([
    ['the simulator over HTTP', overSimulator],
    ['Stripe over its double', overStripe],
  ])(
    '%s: the payment is approved or fenced, never both',
    async (name, open) => {
      const random = randomOf(seed);
      const opened = await open(random);
      try {
        const races = await raceShoppers(opened, random, TIMES);
        expect([races.length, brokenRaces(opened, races)]).toEqual([TIMES, []]);
        const fences = races.filter(({ fenced }) => fenced === 'FENCED').length;
        process.stderr.write(`shoppers and fences, ${name}: ${TIMES - fences}:${fences}\n`);
        // Which orders a short run meets is chance.
        for (const won of [fences, TIMES - fences]) expect(won).toBeGreaterThan(timesOf(0, -1));
      } finally {
        await opened.close();
      }
    },
    120_000,
  );
});
