/**
 * gaps §16: A person's word never ends the asking. What was resolved by hand is asked about until
 * the provider is definite, over restarts too; a contradiction is noted, listed, logged and counted,
 * and bars no command (M5, M6).
 */
import { expect, test } from '@jest/globals';
import { shareOf } from '../support/long-run-share.ts';
import {
  type Asking,
  type CommandResponse,
  idOf,
  locatedId,
  signToken,
} from '../support/service-in-process.ts';
import {
  type CommandProcess,
  openTwoCommandProcesses,
  processesOfTests,
  typesOf,
} from '../support/two-command-processes.ts';
import { until } from '../support/until.ts';

const OFTEN = { RECOVERY_DELAYS_MS: Array(100).fill(20).join() };
const processes = await processesOfTests(OFTEN);
const tokenOf = (sub: string) =>
  signToken({ merchant_id: '*', sub, scope: 'ops:admin ops:resolve' });
const jane = { token: await tokenOf('jane') };
const john = { token: await tokenOf('john') };

const say = (id: string, outcome: string, asking: Asking, at = processes.a) =>
  at.ask(
    'POST',
    `/ops/v1/payments/${id}/resolve`,
    { outcome, evidence: 'call with the provider', withoutFence: outcome === 'declined' },
    asking,
  );
/** Resolves by hand, while the provider responds to no question, what it has or has not carried out. */
const resolveByHand = async (
  outcome: string,
  fault: 'answer lost' | 'call lost',
  at = processes.a,
  send = (): Promise<CommandResponse> => at.create({ captureNow: true }),
): Promise<string> => {
  at.faults.respondsToLookUps = false;
  at.faults.next(fault);
  const id = locatedId(await send());
  expect((await say(id, outcome, jane, at)).status).toBe(202);
  expect((await say(id, outcome, john, at)).status).toBe(200);
  return id;
};
const states = (at: CommandProcess, id: string): string[] =>
  at.side.unresolved
    .list()
    .filter(({ paymentId }) => paymentId === id)
    .map(({ state }) => state);
const lastType = async (id: string) => (await typesOf(processes, id)).at(-1);

test.each([
  ['declined', 'call lost', 'FAILED'],
  ['approved', 'answer lost', 'CAPTURED'],
] as const)(
  'resolved as %s, and the provider says the same (%s): confirmed once, and asked no more',
  async (outcome, fault, status) => {
    const { a } = processes;
    const id = await resolveByHand(outcome, fault);
    expect(states(a, id)).toEqual(['UNCONFIRMED']);
    expect(a.side.unresolved.metrics()).toMatchObject({ count: 0, unconfirmed: 1 });
    a.faults.respondsToLookUps = true;
    await until('it is confirmed', async () => (await lastType(id)) === 'PaymentOutcomeConfirmed');
    await until('nothing is left to ask', () => a.side.unresolved.list().length === 0);
    expect((await processes.state(id)).status).toBe(status);
    expect(await typesOf(processes, id)).toHaveLength(outcome === 'declined' ? 4 : 5);
  },
);

test.each([
  ['declined', 'answer lost', 'FAILED', 'DECLINED', 'APPROVED'],
  ['approved', 'call lost', 'CAPTURED', 'APPROVED', 'FENCED'],
] as const)(
  'resolved as %s, and the provider says other (%s): an error line, a metric, and nothing rewritten',
  async (outcome, fault, status, recorded, provider) => {
    const { a } = processes;
    const id = await resolveByHand(outcome, fault);
    a.faults.respondsToLookUps = true;
    await until('it is contradicted', () => states(a, id)[0] === 'CONTRADICTED');
    expect(a.side.unresolved.metrics()).toMatchObject({ count: 0, contradicted: 1 });
    expect(a.lines.filter(({ level }) => level === 'error')).toContainEqual({
      level: 'error',
      message:
        'the provider contradicts what was resolved by hand; nothing is rewritten: see payments unresolved',
      fields: expect.objectContaining({ paymentId: id, recorded, provider }),
    });
    expect((await processes.state(id)).status).toBe(status);
    const before = a.faults.questions;
    await until('the provider is asked on', () => a.faults.questions > before + 3);
    const types = await typesOf(processes, id);
    expect(types.filter((type) => type === 'PaymentOutcomeContradicted')).toHaveLength(1);

    const other = outcome === 'declined' ? 'approved' : 'declined';
    expect((await say(id, other, jane)).json.details[0]).toContain('nothing is rewritten');
    expect((await say(id, outcome, jane)).status).toBe(202);
    expect(await say(id, outcome, john)).toMatchObject({ status: 200, json: { confirmed: true } });
    expect(await lastType(id)).toBe('PaymentOutcomeConfirmed');
    await until('it is listed no more', () => states(a, id).length === 0);
  },
);

test('an operation that is not confirmed bars no further command, and no command waits for it', async () => {
  const { a } = processes;
  const id = idOf(await a.create({ captureNow: true }));
  await resolveByHand('declined', 'call lost', a, () =>
    a.change('refund', id, { refundAmount: 500 }),
  );
  const held = Promise.withResolvers<void>();
  a.faults.beforeResponse = held.promise;
  const before = a.faults.questions;
  await until('the provider is being asked', () => a.faults.questions > before);
  expect((await a.change('refund', id)).json).toMatchObject({ status: 'REFUNDED' });
  a.faults.beforeResponse = undefined;
  held.resolve();
  a.faults.respondsToLookUps = true;
  await until('it is confirmed', () => states(a, id).length === 0);
  expect((await processes.state(id)).status).toBe('REFUNDED');
});

const FOUND = [
  ['from the log, while the projector is behind', false],
  ['from the read models', true],
] as const;

test.each(shareOf(FOUND, 1))(
  'a process that starts finds what was resolved by hand %s',
  async (_where, projected) => {
    // Its first attempt alone: the next one is due in ten minutes.
    await using slow = await openTwoCommandProcesses({ RECOVERY_DELAYS_MS: '600000' });
    if (!projected) await slow.projector.stop();
    const id = await resolveByHand('declined', 'answer lost', slow.a);
    if (projected)
      await until('the read models list it', async () =>
        (await slow.readModels.unresolved(100)).some(({ paymentId }) => paymentId === id),
      );
    slow.a.side.unresolved.stopAsking();
    const c = await slow.open();
    c.side.startSweep();
    await until('it is contradicted', () => states(c, id)[0] === 'CONTRADICTED');
    expect((await typesOf(slow, id)).at(-1)).toBe('PaymentOutcomeContradicted');
  },
);

test('gaps §8: an equal create without a key joins none that was resolved by hand', async () => {
  const { a } = processes;
  const send = () => a.create({ captureNow: true, merchantReference: 'by-hand' });
  const id = await resolveByHand('declined', 'call lost', a, send);
  expect(idOf(await send())).not.toBe(id);
});
