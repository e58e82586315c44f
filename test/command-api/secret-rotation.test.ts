/** The idempotency secret is changed: what was sent under the one before it is still recognised. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { SecretRefused, withCheckedSecret } from '../../command-api/idempotency-secret.ts';
import { createIdentities } from '../../shared/http/idempotency.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import {
  type CommandResponse,
  type InProcess,
  idOf,
  openInProcess,
} from '../support/service-in-process.ts';

const [OLD, NEW, OTHER] = ['the old', 'the new', 'another'].map(
  (name) => `${name} secret of the tests, 32 bytes at least`,
) as [string, string, string];

let settings: Record<string, string>;
let service: InProcess;
beforeEach(async () => {
  settings = { IDEMPOTENCY_SECRET: OLD, MERCHANT_REFERENCE: 'unique' };
  service = await openInProcess(settings);
});
afterEach(() => service[Symbol.asyncDispose]());

const restartWith = async (secret: string, previous?: string): Promise<void> => {
  settings.IDEMPOTENCY_SECRET = secret;
  delete settings.IDEMPOTENCY_SECRET_PREVIOUS;
  if (previous !== undefined) settings.IDEMPOTENCY_SECRET_PREVIOUS = previous;
  await service.restart();
};

const expectReplay = (repeat: CommandResponse, first: CommandResponse): void => {
  expect([repeat.status, repeat.text]).toEqual([first.status, first.text]);
  expect(repeat.headers).toMatchObject({ 'idempotent-replayed': 'true' });
};

test('repeats of requests under the old secret are recognised after the rotation', async () => {
  const sold = idOf(await service.create({ captureNow: true }));
  const sends = {
    create: () => service.create({ merchantReference: 'order-1' }, { key: 'create' }),
    declined: () => service.create({ number: '4000000000000002' }, { key: 'declined' }),
    refund: () => service.change('refund', sold, { refundAmount: 500 }, { key: 'refund' }),
  };
  const first = new Map<() => Promise<CommandResponse>, CommandResponse>();
  for (const send of Object.values(sends)) first.set(send, await send());
  const again = () => service.create({}, { key: 'not-sent' });
  service.faults.next('not sent');
  expect((await again()).status).toBe(503);
  await restartWith(NEW, OLD);

  for (const [send, response] of first) expectReplay(await send(), response);
  expect((await service.create({ amount: 1 }, { key: 'create' })).json.error).toBe(
    'IDEMPOTENCY_KEY_REUSED',
  );
  const other = await service.change('refund', sold, { refundAmount: 1 }, { key: 'refund' });
  expect(other.json.error).toBe('IDEMPOTENCY_KEY_REUSED');
  // The reference was claimed under the old secret.
  expect((await service.create({ merchantReference: 'order-1' })).json.paymentId).toBe(
    idOf(await sends.create()),
  );
  expect((await service.create({ merchantReference: 'order-1', amount: 1 })).status).toBe(422);
  // The key that the old attempt left free gets its next attempt under the new secret, once that is fenced.
  service.faults.respondsToLookUps = false;
  expect((await again()).status).toBe(503);
  service.faults.respondsToLookUps = true;
  const second = await again();
  expect(second.status).toBe(200);
  expectReplay(await again(), second);
  const created = await service.create({}, { key: 'new' });
  expect(await service.ledger()).toHaveLength(6);

  // Without the older secret new keys are recognised all the same, and the start is accepted.
  await restartWith(NEW);
  expectReplay(await service.create({}, { key: 'new' }), created);
});

/** Starts over one log with the secrets that are set; rejects where a start would be refused. */
const startOver = () => {
  const store = memoryEventStore();
  return async (...secrets: [string, ...string[]]): Promise<void> => {
    await withCheckedSecret(store, createIdentities(secrets), () => undefined);
  };
};

test('a change is accepted only where the secret before it is named', async () => {
  const startWith = startOver();
  await startWith(OLD);
  await expect(startWith(NEW)).rejects.toThrow(SecretRefused);
  await expect(startWith(NEW, OTHER)).rejects.toThrow('IDEMPOTENCY_SECRET_PREVIOUS');
  await startWith(OLD);
  await Promise.all([startWith(NEW, OLD), startWith(NEW, OLD)]);
  await startWith(NEW);
  await expect(startWith(OLD)).rejects.toThrow(SecretRefused);
  await expect(startWith(OTHER, OLD)).rejects.toThrow(SecretRefused);
  await startWith(OTHER, NEW);
  await startWith(OTHER);
});

test('an older secret that wrote nothing is refused, for what it stands in for is charged again', async () => {
  const startWith = startOver();
  await startWith(OLD);
  // Nothing has been changed yet, so nothing can be charged again.
  await startWith(OLD, OTHER);
  await startWith(NEW, OLD);
  await startWith(NEW, OLD);
  for (const wrong of [OTHER, `${OLD},${OTHER}`, NEW]) {
    await expect(startWith(NEW, wrong)).rejects.toThrow(/^IDEMPOTENCY_SECRET_PREVIOUS: /);
  }
  await startWith(NEW);
  await startWith(OTHER, NEW);
  // The one before the current one is recognised, and an earlier one in its place would forget it.
  await expect(startWith(OTHER, OLD)).rejects.toThrow(/^IDEMPOTENCY_SECRET_PREVIOUS: /);
  await startWith(OTHER);
  await startWith(OTHER, OLD);
});

describe('gaps §8: a second rotation within the time of the first', () => {
  const STILL = /^IDEMPOTENCY_SECRET: the rotation .* has not ended/;

  test.each<
    [what: string, starts: [string, ...string[]][], last: [string, ...string[]], isTaken: boolean]
  >([
    ['is refused', [[OLD], [NEW, OLD]], [OTHER, NEW], false],
    ['is refused after any restart', [[OLD], [NEW, OLD], [NEW, OLD]], [OTHER, NEW], false],
    ['is taken once the first has ended', [[OLD], [NEW, OLD], [NEW]], [OTHER, NEW], true],
    ['is refused after the next', [[OLD], [NEW, OLD], [NEW], [OTHER, NEW]], [OLD, OTHER], false],
    ['is taken where it takes the first one back', [[OLD], [NEW, OLD]], [OLD, NEW], true],
    ['is refused where that has not ended', [[OLD], [NEW, OLD], [OLD, NEW]], [OTHER, OLD], false],
  ])('%s', async (_what, starts, last, isTaken) => {
    const startWith = startOver();
    for (const secrets of starts) await startWith(...secrets);
    if (isTaken) await startWith(...last);
    else await expect(startWith(...last)).rejects.toThrow(STILL);
    // What stood before it stands as it did.
    if (!isTaken) await startWith(...(starts.at(-1) as [string, ...string[]]));
  });

  test('is not needed to take the first one back: repeats of before it and of after it are recognised', async () => {
    const before = await service.create({}, { key: 'before' });
    await restartWith(NEW, OLD);
    const after = await service.create({}, { key: 'after' });
    await restartWith(OLD, NEW);
    expectReplay(await service.create({}, { key: 'before' }), before);
    expectReplay(await service.create({}, { key: 'after' }), after);
    expect(await service.ledger()).toHaveLength(2);
  });
});
