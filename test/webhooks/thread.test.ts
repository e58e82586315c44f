/** ADR-0226: where one process has the log, the deliverer runs in a thread beside the requests. */
import { readdirSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { expect, jest, test } from '@jest/globals';
import {
  AppendOutcomeUnknown,
  RevisionConflict,
  StoreUnavailable,
} from '../../shared/event-store/errors.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { readEndpoints } from '../../shared/webhooks/endpoint-log.ts';
import { timesOf } from '../support/long-run-share.ts';
import { threadedDeliverer } from '../support/threaded-deliverer.ts';
import { until } from '../support/until.ts';
import type { Received } from '../support/webhook-receiver.ts';

jest.setTimeout(240_000);

const revisionsOf = (received: readonly Received[]): Record<string, number[]> => {
  const revisions: Record<string, number[]> = {};
  for (const { json } of received) {
    const { payment, revision } = json.data;
    const before = revisions[payment.paymentId] ?? [];
    if (!before.includes(revision)) revisions[payment.paymentId] = [...before, revision];
  }
  return revisions;
};

const count = (received: readonly Received[]): number => new Set(received.map(({ id }) => id)).size;

/** The priority of each thread of this process: the larger the number, the less of the CPU. */
const priorities = (): Map<string, number> => {
  const found = new Map<string, number>();
  for (const thread of readdirSync('/proc/self/task')) {
    try {
      const stat = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8');
      found.set(thread, Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]));
    } catch {
      // It has ended since.
    }
  }
  return found;
};

test('there is no thread before the first endpoint, and then one', async () => {
  await using world = await threadedDeliverer();
  const { threads, deliverer, receiver } = world;
  await world.pay('pay_before');
  await until('it has looked for one twice', () => world.looks() >= 2);
  expect(threads).toEqual([]);
  expect(deliverer.status()).toMatchObject({ state: 'idle', oldestWaitingMs: null });
  await world.register();
  await world.pay('pay_1');
  await until('its messages', () => receiver.received.length === 2);
  expect(revisionsOf(receiver.received)).toEqual({ pay_1: [1, 3] });
  expect(threads).toHaveLength(1);
  await until('it says that it runs', () => deliverer.status().state === 'running');
  expect(deliverer.status().endpoints).toMatchObject({ ENABLED: 1 });
  await until('its attempts are counted', () => world.attempts.length === 2);
  expect(world.attempts).toMatchObject([{ outcome: 'ACCEPTED' }, { outcome: 'ACCEPTED' }]);
});

const onLinux = process.platform === 'linux' ? test : test.skip;
onLinux('its thread, and no other, yields the CPU to those that serve requests', async () => {
  await using world = await threadedDeliverer({ yieldsCpu: true });
  const before = priorities();
  await world.register();
  await world.pay('pay_1');
  await until('its messages', () => world.receiver.received.length === 2);
  const lowered = [...priorities()].filter(
    ([thread, priority]) => !before.has(thread) && priority > getPriority(),
  );
  // 19 is the last one that there is.
  expect(lowered.map(([, priority]) => priority)).toEqual([Math.min(getPriority() + 15, 19)]);
});

test('a thread that dies under load is started again: one line each time, nothing lost, order kept', async () => {
  await using world = await threadedDeliverer();
  const { receiver, threads, deliverer } = world;
  const endpointId = await world.register();
  const DEATHS = timesOf(4, 2);
  const states = new Set<string>();
  let paid = 0;
  for (let death = 1; death <= DEATHS; death += 1) {
    const before = receiver.received.length;
    for (let n = 0; n < 30; n += 1) {
      await world.pay(`pay_${paid}`);
      paid += 1;
    }
    await until('it sends', () => receiver.received.length > before);
    await threads.at(-1)?.end();
    await until('its death is known', () => {
      states.add(deliverer.status().state);
      return world.said('webhook deliveries interrupted').length === death;
    });
    const { state, error } = deliverer.status();
    if (state === 'backing-off') expect(error).toContain('thread');
    await until('the next one', () => threads.length === death + 1);
  }
  await until('all of them', () => count(receiver.received) === 2 * paid);
  const revisions = revisionsOf(receiver.received);
  expect(Object.keys(revisions)).toHaveLength(paid);
  for (const one of Object.values(revisions)) expect(one).toEqual([1, 3]);
  expect(states).toContain('backing-off');
  await until('it runs again', () => deliverer.status().state === 'running');
  expect(deliverer.status()).not.toHaveProperty('error');
  expect(world.said('interrupted').map(({ level }) => level)).toEqual(Array(DEATHS).fill('error'));
  // The connection of the routes reads what the thread saves.
  await using reading = Object.assign(world.deliveries(), {
    [Symbol.asyncDispose]: async () => undefined,
  });
  await until('the last attempt', async () => {
    const [last] = await reading.attempts(endpointId, { limit: 1 });
    return last?.attempt.eventId === receiver.received.at(-1)?.id;
  });
  await reading.close();
});

test('an append that is refused, or of unknown outcome, is that in the thread too', async () => {
  const ids: string[] = [];
  const failures = [
    (): Error => new AppendOutcomeUnknown('the disk did not say'),
    (): Error => new RevisionConflict('another was first'),
    (): Error => new StoreUnavailable('the disk is full'),
  ];
  await using world = await threadedDeliverer({
    store: (own): Pick<EventStore, 'append'> => ({
      append: async (stream, expected, events) => {
        ids.push(events.map(({ id }) => id).join());
        const failure = failures.shift();
        if (failure !== undefined) throw failure();
        return own.append(stream, expected, events);
      },
    }),
  });
  await world.register();
  world.receiver.respond = (_received, response) => response.writeHead(410).end();
  await world.pay('pay_1');
  const endpoint = async () => (await readEndpoints(world.store, 'm_1')).endpoints[0];
  await until('it is not disabled yet', () => world.said('not disabled yet').length === 1);
  // Of unknown outcome: the very same append again. A conflict: decided again. Else: the next failure does it.
  expect(ids).toHaveLength(3);
  expect([ids[1] === ids[0], ids[2] === ids[0]]).toEqual([true, false]);
  expect(world.said('not disabled yet')[0]?.fields).toMatchObject({ reason: 'the disk is full' });
  await until('it is disabled', async () => (await endpoint())?.disabled !== undefined);
  expect(await endpoint()).toMatchObject({ disabled: { reason: 'GONE' } });
});

test('a stop does not wait for an address that hangs; what was under way is sent after the next start', async () => {
  await using world = await threadedDeliverer();
  world.receiver.respond = () => undefined;
  await world.register();
  await world.pay('pay_1');
  await until('it hangs', () => world.receiver.received.length === 1);
  const beganMs = performance.now();
  await world.deliverer.stop();
  expect(performance.now() - beganMs).toBeLessThan(4_000);
  expect(world.deliverer.status().state).toBe('stopped');
  expect(world.said('interrupted')).toEqual([]);
  world.receiver.respond = undefined;
  world.deliverer = world.start();
  await until('both', () => count(world.receiver.received) === 2);
  expect(revisionsOf(world.receiver.received)).toEqual({ pay_1: [1, 3] });
});

test('a thread that does not end by itself is ended, within the time that a stop may take', async () => {
  await using world = await threadedDeliverer({ isDeaf: true });
  await world.register();
  await world.pay('pay_1');
  await until('its messages', () => world.receiver.received.length === 2);
  const beganMs = performance.now();
  await world.deliverer.stop();
  expect(performance.now() - beganMs).toBeLessThan(8_000);
  expect(world.deliverer.status().state).toBe('stopped');
  world.deliverer = world.start();
});

test('a process that has lost its turn delivers no more', async () => {
  let turn: 'own' | 'of another' = 'own';
  await using world = await threadedDeliverer({ turn: () => turn });
  await world.register();
  await world.pay('pay_1');
  await until('its messages', () => world.receiver.received.length === 2);
  turn = 'of another';
  await until('it stands by', () => world.deliverer.status().state === 'standing-by');
  // No loop is left that could send.
  await until('they have ended', () => world.deliverer.status().endpoints.ENABLED === 0);
});
