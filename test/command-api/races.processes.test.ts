/** Faults, races: 64 commands at once on one payment, from two processes. */
import { describe, expect, test } from '@jest/globals';
import { type CommandResponse, idOf, NO_RETRIES } from '../support/service-in-process.ts';
import {
  authorizedAt,
  type CommandProcess,
  kindsOf,
  processesOfTests,
} from '../support/two-command-processes.ts';

const processes = await processesOfTests(NO_RETRIES);

/** Sends 64 commands at once, every other one from the other process. */
const race = (send: (at: CommandProcess, n: number) => Promise<CommandResponse>) =>
  Promise.all(Array.from({ length: 64 }, (_, n) => send(n % 2 ? processes.a : processes.b, n)));
const countOf = (responses: CommandResponse[], status: number): number =>
  responses.filter((response) => response.status === status).length;

describe('M2, M3: 64 commands at once on one payment, from two processes', () => {
  test('of captures and voids exactly one succeeds', async () => {
    const id = await authorizedAt(processes.a);
    const responses = await race((at, n) =>
      at.change(n % 4 < 2 ? 'capture' : 'void', id, n % 4 < 2 ? { amount: n + 1 } : undefined),
    );
    expect([countOf(responses, 200), countOf(responses, 422)]).toEqual([1, 63]);
    expect(await kindsOf(processes, id)).toHaveLength(2);
  });

  test('refunds add up to exactly what was captured', async () => {
    const id = idOf(await processes.a.create({ captureNow: true }));
    const responses = await race((at) => at.change('refund', id, { refundAmount: 100 }));
    expect([countOf(responses, 200), countOf(responses, 422)]).toEqual([25, 39]);
    expect(await processes.state(id)).toMatchObject({ status: 'REFUNDED', refundedAmount: 2500 });
    expect(await kindsOf(processes, id)).toHaveLength(26);
  });
});
