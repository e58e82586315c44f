/** When the ledger is compared with the log, and what requests that move money get meanwhile. */
import { afterEach, describe, expect, test } from '@jest/globals';
import {
  createProviderAhead,
  type ProviderAhead,
} from '../../command-api/back-office/provider-ahead/provider-ahead.ts';
import { readOnlyWarnings } from '../../command-api/health.ts';
import { LedgerEndNotFound } from '../../providers/port.ts';
import { PROVIDER_AHEAD_STREAM } from '../../shared/payment/audit-events.ts';
import { newEventId } from '../../shared/runtime/ids.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import { created } from '../support/payment-events.ts';
import { ledgerEntry } from '../support/provider-operations.ts';
import { silent } from '../support/silent-log.ts';
import { until } from '../support/until.ts';

const ENTRY = ledgerEntry({ cursor: '7' });
const OPERATOR = { actor: 'operator', requestId: 'r', correlationId: 'r', causationId: 'r' };

const opened: ProviderAhead[] = [];
afterEach(() => {
  for (const one of opened.splice(0)) one.stop();
});

/** A provider that may be out of reach, or not answer yet, with one operation the log does not hold. */
const openOver = (store = memoryEventStore(), providers = ['http:pay.example']) => {
  const provider = {
    reachable: true,
    responds: Promise.resolve(),
    reads: 0,
    ledgerEnd: async (after: string | null) => {
      provider.reads += 1;
      await provider.responds;
      if (!provider.reachable) throw new Error('out of reach');
      return after === ENTRY.cursor ? [] : [ENTRY];
    },
  };
  const open = (): ProviderAhead => {
    const ahead = createProviderAhead({ store, provider, providers, logger: silent });
    opened.push(ahead);
    return ahead;
  };
  return { provider, open };
};

/** Started while its provider is out of reach. */
const startAway = async ({ provider, open } = openOver()) => {
  provider.reachable = false;
  const ahead = open();
  await ahead.start();
  return { provider, ahead };
};

describe('gaps §17: a log that is known to be level with the ledger', () => {
  /** The ledger's one operation is in the log. */
  const openLevel = async () => {
    const store = memoryEventStore();
    const context = { ...OPERATOR };
    const event = created();
    const time = '2026-01-01T00:00:00.000Z';
    await store.append('payment-pay_1', 'none', [{ id: newEventId(), time, event, context }]);
    return openOver(store);
  };

  test('is level once the ledger was compared and nothing is missing', async () => {
    const { provider, ahead } = await startAway(await openLevel());
    expect(ahead.isLevel()).toBe(false);
    provider.reachable = true;
    await ahead.readOnly();
    expect(ahead.isLevel()).toBe(true);
  });

  test('is not, where requests passed before that may fill the last page of the ledger', async () => {
    const { provider, ahead } = await startAway(await openLevel());
    expect(await ahead.readOnly()).toBeUndefined();
    provider.reachable = true;
    expect(await ahead.readOnly()).toBeUndefined();
    expect(ahead.isLevel()).toBe(false);
  });
});

test('gaps §17: where the end of the ledger is hidden, merchants only read until an operator opens it', async () => {
  const hidden = { cursor: '1700000000.' };
  const provider = {
    ledgerEnd: async (after: string | null) => {
      if (after === hidden.cursor) return [];
      throw new LedgerEndNotFound(hidden.cursor);
    },
  };
  const ahead = createProviderAhead({
    store: memoryEventStore(),
    provider,
    providers: ['stripe'],
    logger: silent,
  });
  opened.push(ahead);
  await ahead.start();
  expect(await ahead.readOnly()).toBe('ahead');
  expect(readOnlyWarnings({ providerAhead: ahead })).toEqual([
    expect.stringContaining('was not found, so it may hold operations'),
  ]);
  expect(await ahead.acknowledge(OPERATOR)).toEqual({ operations: 0, ...hidden });
  expect(await ahead.readOnly()).toBeUndefined();
  expect(ahead.isLevel()).toBe(false);
});

describe('a provider that is ahead of the log', () => {
  test('one that is out of reach at the start holds up no request, and the first one after its return is rejected', async () => {
    const { provider, ahead } = await startAway();
    expect(await ahead.readOnly()).toBeUndefined();
    expect(readOnlyWarnings({ providerAhead: ahead })).toEqual([]);
    provider.reachable = true;
    expect(await ahead.readOnly()).toBe('ahead');
    expect(ahead.now()).toMatchObject({ operations: 1, cursor: '7' });
    expect(await ahead.acknowledge(OPERATOR)).toEqual({ operations: 1, cursor: '7' });
    expect(await ahead.readOnly()).toBeUndefined();
  });

  test('while it is away, requests that come at a time have the ledger read once', async () => {
    const { provider, ahead } = await startAway();
    const held = Promise.withResolvers<void>();
    provider.responds = held.promise;
    provider.reads = 0;
    const requests = Array.from({ length: 20 }, () => ahead.readOnly());
    held.resolve();
    expect(new Set(await Promise.all(requests))).toEqual(new Set([undefined]));
    expect(provider.reads).toBe(1);
  });

  test('a ledger that never answers holds up each request for a moment alone', async () => {
    const { provider, ahead } = await startAway();
    provider.responds = new Promise(() => undefined);
    expect(await ahead.readOnly()).toBeUndefined();
  });

  test('a request that comes during the first comparison waits for what it finds', async () => {
    const { provider, open } = openOver();
    const held = Promise.withResolvers<void>();
    provider.responds = held.promise;
    const ahead = open();
    await ahead.start();
    const request = ahead.readOnly();
    held.resolve();
    expect(await request).toBe('ahead');
  });

  test('and is rejected where that takes longer than a moment', async () => {
    const { provider, open } = openOver();
    const held = Promise.withResolvers<void>();
    provider.responds = held.promise;
    const ahead = open();
    await ahead.start();
    expect(await ahead.readOnly()).toBe('comparing');
    expect(readOnlyWarnings({ providerAhead: ahead })).toEqual([
      expect.stringContaining('still compared with the event log; merchants can only read'),
    ]);
    held.resolve();
    await until('it is compared', () => !ahead.isComparing());
    expect(readOnlyWarnings({ providerAhead: ahead })).toEqual([
      expect.stringContaining('payments reconcile --acknowledge'),
    ]);
  });

  test('an acknowledgement in one process opens the others, and the next start is level', async () => {
    const { open } = openOver();
    const [one, other] = [open(), open()];
    await Promise.all([one.start(), other.start()]);
    expect([await one.readOnly(), await other.readOnly()]).toEqual(['ahead', 'ahead']);
    expect(await one.acknowledge(OPERATOR)).toEqual({ operations: 1, cursor: '7' });
    expect(await one.readOnly()).toBeUndefined();
    await until('the other opens', async () => (await other.readOnly()) === undefined);
    const next = open();
    await next.start();
    expect(await next.readOnly()).toBeUndefined();
    expect(await next.acknowledge(OPERATOR)).toBeUndefined();
    // Once an operator has opened it, it is not known to be level.
    expect([one, other, next].map((each) => each.isLevel())).toEqual([false, false, false]);
  });

  test('while it is ahead, an acknowledgement is looked for and its ledger is not read again', async () => {
    const store = memoryEventStore();
    let looks = 0;
    const counted = {
      ...store,
      stored: {
        ...store.stored,
        readStream: (stream: string) => {
          if (stream === PROVIDER_AHEAD_STREAM) looks += 1;
          return store.stored.readStream(stream);
        },
      },
    };
    const { provider, open } = openOver(counted);
    const ahead = open();
    await ahead.start();
    const after = looks;
    await until('it has looked twice', () => looks >= after + 2);
    expect(await ahead.readOnly()).toBe('ahead');
    expect(provider.reads).toBe(1);
  });

  test('ADR-0247: what was acknowledged of another provider opens nothing at this one', async () => {
    const store = memoryEventStore();
    const startOf = async (...names: string[]) => {
      const ahead = openOver(store, names).open();
      await ahead.start();
      return ahead;
    };
    const earlier = await startOf('stripe');
    await earlier.acknowledge(OPERATOR);
    const other = await startOf('http:pay.example');
    expect(await other.readOnly()).toBe('ahead');
    expect(await (await startOf('http:pay.example', 'stripe')).readOnly()).toBeUndefined();
    await other.acknowledge(OPERATOR);
    expect(await (await startOf('stripe')).readOnly()).toBeUndefined();
    expect(await (await startOf('http:other.example')).readOnly()).toBe('ahead');
  });
});
