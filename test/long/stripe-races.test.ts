import { describe, expect, test } from '@jest/globals';
import type { ProviderOperationKind } from '../../command-api/provider/port.ts';
import { newSeed, randomOf } from '../support/random.ts';
import { stripeDouble } from '../support/stripe-double/server.ts';
import { driverOver } from '../support/stripe-fault-rounds.ts';
import { brokenWords, isReleased, type Race, raceFences } from '../support/stripe-races.ts';

const OF_EACH_KIND = 200;
const seed = newSeed();

const report = (races: readonly Race[]): Map<ProviderOperationKind, number[]> => {
  const won = new Map<ProviderOperationKind, number[]>();
  for (const [kind, of = []] of Map.groupBy(races, (race) => race.kind)) {
    const fences = of.filter(({ fenced }) => fenced === 'FENCED').length;
    won.set(kind, [fences, of.filter(({ moved }) => moved === 1).length]);
  }
  const counts = [...won].map(([kind, [fence, call]]) => `${kind} ${fence}:${call}`);
  process.stderr.write(
    `fences over the double, seed ${seed}: fence:call ${counts.join(', ')}; ` +
      `${races.filter(isReleased).length} holds released by their own fence\n`,
  );
  return won;
};

const race = async () => {
  const double = await stripeDouble();
  const provider = driverOver(double.url);
  const options = { ofEachKind: OF_EACH_KIND, atOnce: 4 };
  const races = await raceFences(provider, double, randomOf(seed), options);
  await provider.close();
  await double.close();
  return { races, won: report(races) };
};

describe(`a call and its own fence at once, seed ${seed}`, () => {
  test('what was fenced is never carried out, whichever is first', async () => {
    const { races, won } = await race();
    expect(races).toHaveLength(5 * OF_EACH_KIND);
    expect(brokenWords(races)).toEqual([]);
    // Both orders were met, for each kind.
    for (const [kind, [fences = 0, calls = 0]] of won) {
      expect([kind, fences > 0, calls > 0]).toEqual([kind, true, true]);
    }
  }, 120_000);
});
