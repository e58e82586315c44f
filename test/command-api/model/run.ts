/** Runs sequences of steps against the service and the model; a seed that failed is kept here. */
import fc from 'fast-check';
import {
  type InProcess,
  NO_RETRIES,
  openInProcess,
  token,
} from '../../support/service-in-process.ts';
import { steps, type World } from './commands.ts';

type ModelRun = { sequences: number; commands: number; slow: boolean; seed?: number };

/** Runs the sequences; gives the pairs of status and command that they met. */
export const agreeWithModel = async (run: ModelRun): Promise<Set<string>> => {
  const visited = new Set<string>();
  await using service: InProcess = await openInProcess({ ...NO_RETRIES, MAX_IN_FLIGHT: '64' });
  // What becomes of a payment later is a step of its own.
  service.faults.givesNotice = false;
  let count = 0;
  // A kept seed means the sequences of the steps that it was found with.
  const afterwards = run.seed === undefined;
  await fc.assert(
    fc.asyncProperty(steps(run.commands, run.slow, afterwards), async (sequence) => {
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
