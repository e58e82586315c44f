/** Model checking: a share each day; in the long run thousands of sequences, with restarts and a projector that stands still. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { testOfLongRun, timesOf } from '../../support/long-run-share.ts';
import { NO_RETRIES, openInProcess, token } from '../../support/service-in-process.ts';
import { LATER_KINDS, steps, type World } from './commands.ts';

/** Seeds of sequences that once failed. */
const KEPT_SEEDS: number[] = [2055767803];

type ModelRun = { sequences: number; commands: number; slow?: boolean; seed?: number };

/** Runs the sequences; gives the pairs of status and command that they met. */
const agreeWithModel = async (run: ModelRun): Promise<Set<string>> => {
  const visited = new Set<string>();
  await using service = await openInProcess({ ...NO_RETRIES, MAX_IN_FLIGHT: '64' });
  // What becomes of a payment later is a step of its own.
  service.faults.givesNotice = false;
  let count = 0;
  // A kept seed means the sequences of the steps that it was found with.
  const afterwards = run.seed === undefined;
  await fc.assert(
    fc.asyncProperty(steps(run.commands, run.slow ?? false, afterwards), async (sequence) => {
      count += 1;
      const name = `model-${count}`;
      const tokens = { own: await token(name), foreign: await token(`${name}-foreign`) };
      const world: World = { known: [], sent: [], visited, tokens, run: name };
      await fc.asyncModelRun(() => ({ model: world, real: service }), sequence);
    }),
    { numRuns: run.sequences, ...(run.seed !== undefined && { seed: run.seed }) },
  );
  return visited;
};

describe('M1-M8: after any sequence of steps, amounts and status are those of plain arithmetic', () => {
  test('new sequences in every run', async () => {
    const visited = await agreeWithModel({ sequences: timesOf(100, 50), commands: 14 });
    // Which pairs of status and command a run meets is random; the long run has to meet them all.
    expect(visited.size).toBeGreaterThan(8);
  });

  for (const seed of KEPT_SEEDS) {
    testOfLongRun(`the seed ${seed}, which failed once`, async () => {
      await agreeWithModel({ sequences: 50, commands: 25, seed });
    });
  }
});

testOfLongRun(
  'M1-M8: amounts and statuses after thousands of sequences are those of plain arithmetic',
  async () => {
    const fast = await agreeWithModel({ sequences: 3000, commands: 25 });
    const slow = await agreeWithModel({ sequences: 150, commands: 40, slow: true });
    process.stderr.write('model: 3150 sequences, 0 divergences\n');
    const others = ['AUTHORIZED', 'CAPTURED', 'VOIDED', 'REFUNDED', 'FAILED'];
    for (const status of [...others, 'PENDING', 'PENDING unresolved']) {
      for (const kind of ['capture', 'void', 'refund']) {
        expect([...fast, ...slow]).toContain(`${status} x ${kind}`);
      }
    }
    for (const met of ['refund after a bounce', 'come to authenticate', 'come to fail'])
      expect([...fast, ...slow]).toContain(met);
    for (const kind of LATER_KINDS) expect([...fast, ...slow]).toContain(`later ${kind}`);
  },
);
