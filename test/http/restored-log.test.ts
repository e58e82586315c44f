/**
 * gaps §17: the event log is put back to an older state while the provider's ledger keeps what
 * happened since. A merchant who repeats a key reaches the provider with the operation id that it
 * knows, gets the first outcome, and the log has it again.
 */
import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  type CommandResponse,
  type InProcess,
  idOf,
  openInProcess,
} from '../support/in-process.ts';

let service: InProcess;
beforeEach(async () => {
  service = await openInProcess();
});
afterEach(() => service[Symbol.asyncDispose]());

const backUp = () =>
  service.restart((folder) =>
    copyFileSync(join(folder, 'events.sqlite'), join(folder, 'events.backup')),
  );

/** Read models are filled from the events, as after every restore. */
const restore = () =>
  service.restart((folder) => {
    for (const file of ['events.sqlite', 'read-models.sqlite'])
      for (const end of ['', '-wal', '-shm']) rmSync(join(folder, file + end), { force: true });
    copyFileSync(join(folder, 'events.backup'), join(folder, 'events.sqlite'));
  });

/** The response without what its events were stored at: id, status, sums, transaction ids. */
const outcomeOf = ({ status, json }: CommandResponse) => {
  const { paymentId, status: state, amount, capturedAmount, refundedAmount } = json;
  const transactions = json.transactions.map(({ id, type, amount: sum }) => ({ id, type, sum }));
  return { status, paymentId, state, amount, capturedAmount, refundedAmount, transactions };
};

describe('F3: a repeat under a key after a restore is not carried out a second time', () => {
  test('F3: a sale that the restored log does not know', async () => {
    await backUp();
    const send = () => service.create({ captureNow: true }, { key: 'k' });
    const first = await send();
    await restore();
    expect((await service.get(idOf(first))).status).toBe(404);
    expect(outcomeOf(await send())).toEqual(outcomeOf(first));
    expect((await service.get(idOf(first))).json.status).toBe('CAPTURED');
    expect(await service.ledger()).toHaveLength(1);
  });

  test.each(['capture', 'void', 'refund'])(
    'F3: a %s of a payment that it knows',
    async (change) => {
      const id = idOf(await service.create({ captureNow: change === 'refund' }));
      await backUp();
      const body = change === 'refund' ? { refundAmount: 500 } : undefined;
      const send = () => service.change(change, id, body, { key: 'k' });
      const first = await send();
      await restore();
      expect(outcomeOf(await send())).toEqual(outcomeOf(first));
      expect(await service.ledger(id)).toHaveLength(2);
    },
  );

  test('F3: the second attempt of a key whose first was never sent', async () => {
    await backUp();
    const send = () => service.create({}, { key: 'k' });
    service.faults.next('not sent');
    expect((await send()).status).toBe(503);
    const first = await send();
    expect(first.status).toBe(200);
    await restore();
    // The first attempt has been fenced, so that its operation is not carried out now.
    expect((await send()).status).toBe(503);
    expect(outcomeOf(await send())).toEqual(outcomeOf(first));
    expect(await service.ledger()).toHaveLength(1);
  });

  test('F3: the second attempt of a refund whose first was never sent', async () => {
    const id = idOf(await service.create({ captureNow: true }));
    await backUp();
    const send = () => service.change('refund', id, { refundAmount: 500 }, { key: 'k' });
    service.faults.next('not sent');
    expect((await send()).status).toBe(503);
    expect((await send()).status).toBe(200);
    await restore();
    expect((await send()).status).toBe(503);
    expect((await send()).json).toMatchObject({ refundedAmount: 500 });
    expect(await service.ledger(id)).toHaveLength(2);
  });

  test('F3: no further attempt is made while the provider does not fence the one before', async () => {
    const send = () => service.create({}, { key: 'k' });
    service.faults.next('not sent');
    const failed = await send();
    service.faults.respondsToLookUps = false;
    const again = await send();
    expect([again.status, again.headers.location]).toEqual([503, failed.headers.location]);
    expect(service.faults.calls).toHaveLength(1);
    service.faults.respondsToLookUps = true;
    expect((await send()).status).toBe(200);
    expect(await service.ledger()).toHaveLength(1);
  });
});

describe('F3: an operation id under a key', () => {
  const idsOf = (): string[] => service.faults.calls.map(({ operationId }) => operationId);

  test('is another one for each payment, route and attempt, and random without a key', async () => {
    const payments = [idOf(await service.create()), idOf(await service.create())];
    for (const id of payments) {
      for (const change of ['capture', 'refund'] as const) {
        service.faults.next('not sent');
        await service.change(change, id, { amount: 5 }, { key: 'k' });
        await service.change(change, id, { amount: 5 }, { key: 'k' });
      }
    }
    expect(service.faults.calls).toHaveLength(10);
    expect(new Set(idsOf()).size).toBe(10);
    for (const operationId of idsOf()) expect(operationId).toMatch(/^op_[0-9A-HJKMNP-TV-Z]{26}$/);
  });
});
