/**
 * A call of Stripe's driver beside its own fence, as a process that was given up for dead and the one
 * that took over: whichever is first, the fence's word holds. Between them stands what the log keeps.
 */
import { describe, expect, test } from '@jest/globals';
import type {
  OperationQuestion,
  Provider,
  ProviderOperation,
  ProviderOperationKind,
} from '../../command-api/provider/port.ts';
import { type Random, randomOf } from '../support/random.ts';
import { type StripeDouble, stripeDouble } from '../support/stripe-double/server.ts';
import { driverOver, prepared, timesMovedIn } from '../support/stripe-fault-rounds.ts';

const KINDS: readonly ProviderOperationKind[] = ['AUTHORIZE', 'SALE', 'CAPTURE', 'VOID', 'REFUND'];
/** Every request that moves money takes up to so long before it acts. */
const ACTS_MS_MAX = 5;
const SPAN_MS_MAX = 500;

type Words = {
  operation: ProviderOperation;
  kind: ProviderOperationKind;
  /** The outcomes that the call and its fence gave. */
  called: string;
  fenced: string;
};
type Race = Words & {
  /** How often Stripe's books have it, once all is over. */
  moved: number;
};

const after = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * What the payment's stream does: the reference is kept unless a fence without it is recorded, and
 * such a fence is not recorded once it is there.
 */
const streamOf = () => {
  let reference: string | undefined;
  let isFenced = false;
  return {
    opened: async (named: string): Promise<void> => {
      if (isFenced) throw new Error('another process has appended');
      reference = named;
    },
    reference: () => reference,
    /** False where the fence was judged on another revision: it is to be asked again. */
    record: (judgedOn: string | undefined): boolean => {
      if (judgedOn !== reference) return false;
      isFenced = true;
      return true;
    },
  };
};

const fenceOf = async (
  provider: Provider,
  operation: ProviderOperation,
  stream: ReturnType<typeof streamOf>,
): Promise<string> => {
  for (;;) {
    const reference = stream.reference();
    const requestedAt = new Date().toISOString();
    const question: OperationQuestion = { ...operation, reference, requestedAt };
    const { outcome } = await provider.fence(question);
    if (outcome !== 'FENCED' || stream.record(reference)) return outcome;
  }
};

/** How long a fence took last: the other may begin at any moment of it, on a slow machine as well. */
type Span = { ms: number };

const race = async (
  provider: Provider,
  kind: ProviderOperationKind,
  random: Random,
  span: Span,
): Promise<Words> => {
  const operation = await prepared(provider, kind);
  const stream = streamOf();
  const ms = random.between(0, Math.ceil(span.ms * 1.5));
  const isCallFirst = random.chance(0.5);
  const fence = async (): Promise<string> => {
    await after(isCallFirst ? ms : 0);
    const from = performance.now();
    const outcome = await fenceOf(provider, operation, stream);
    span.ms = Math.min(performance.now() - from, SPAN_MS_MAX);
    return outcome;
  };
  const [{ outcome: called }, fenced] = await Promise.all([
    after(isCallFirst ? 0 : ms).then(() => provider.execute(operation, stream.opened)),
    fence(),
  ]);
  return { operation, kind, called, fenced };
};

/** So many races of each kind, some at once; each request that moves money takes a moment. */
const raceFences = async (
  provider: Provider,
  double: StripeDouble,
  random: Random,
  { ofEachKind, atOnce }: { ofEachKind: number; atOnce: number },
): Promise<Race[]> => {
  double.actsAfterMs(() => random.between(0, ACTS_MS_MAX));
  const span: Span = { ms: ACTS_MS_MAX };
  const left = KINDS.flatMap((kind) => Array.from({ length: ofEachKind }, () => kind));
  const words: Words[] = [];
  const work = async (): Promise<void> => {
    for (let kind = left.pop(); kind !== undefined; kind = left.pop()) {
      words.push(await race(provider, kind, random, span));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  const kept = double.books.all();
  return words.map((word) => ({ ...word, moved: timesMovedIn(kept, word.operation) }));
};

/**
 * A hold that its own fence released, because the confirm came between the fence's look and its cancel
 * (docs/providers/stripe.md): no money moved.
 */
const isReleased = ({ kind, called, fenced, moved }: Race): boolean =>
  kind === 'AUTHORIZE' && called === 'APPROVED' && fenced === 'FENCED' && moved === 0;

/** The races in which a word did not hold. */
const brokenWords = (races: readonly Race[]): Race[] =>
  races.filter((race) => {
    const { called, fenced, moved } = race;
    if (moved > 1) return true;
    if (fenced === 'FENCED') return moved === 1 || (called === 'APPROVED' && !isReleased(race));
    return (called === 'APPROVED' || fenced === 'APPROVED') && moved === 0;
  });

const OF_EACH_KIND = 200;

const report = (races: readonly Race[]): Map<ProviderOperationKind, number[]> => {
  const won = new Map<ProviderOperationKind, number[]>();
  for (const [kind, of = []] of Map.groupBy(races, (race) => race.kind)) {
    const fences = of.filter(({ fenced }) => fenced === 'FENCED').length;
    won.set(kind, [fences, of.filter(({ moved }) => moved === 1).length]);
  }
  const counts = [...won].map(([kind, [fence, call]]) => `${kind} ${fence}:${call}`);
  process.stderr.write(
    `fences over the double: fence:call ${counts.join(', ')}; ` +
      `${races.filter(isReleased).length} holds released by their own fence\n`,
  );
  return won;
};

describe(`a call and its own fence at once`, () => {
  test('what was fenced is never carried out, whichever is first', async () => {
    const double = await stripeDouble();
    const provider = driverOver(double.url);
    const options = { ofEachKind: OF_EACH_KIND, atOnce: 4 };
    const races = await raceFences(provider, double, randomOf(), options);
    await provider.close();
    await double.close();
    const won = report(races);
    expect(races).toHaveLength(5 * OF_EACH_KIND);
    expect(brokenWords(races)).toEqual([]);
    // Both orders were met, for each kind.
    for (const [kind, [fences = 0, calls = 0]] of won) {
      expect([kind, fences > 0, calls > 0]).toEqual([kind, true, true]);
    }
  });
});
