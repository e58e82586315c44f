/**
 * P3 for payments that the relay has parked and is requested to send again: no message is missing or
 * out of order, and one that comes twice is the same to the byte, wherever the relay is killed.
 */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { streamOf } from '../../shared/payment/events.ts';
import type { KeyDocument } from '../../shared/read-models/key-document.ts';
import { RelayNotReady } from '../../topics/errors.ts';
import { partitionOf } from '../../topics/messages.ts';
import { type EventFeed, FeedUnavailable } from '../../topics/port.ts';
import type { Relay } from '../../topics/relay.ts';
import { type Driver, describeDriver } from '../support/describe-driver.ts';
import { expectWhole } from '../support/feed-checks.ts';
import type { FeedDriver, FeedUnderTest } from '../support/feed-drivers.ts';
import { appendLives, LIFE } from '../support/many-payments.ts';
import { type MemoryEventStore, memoryEventStore } from '../support/memory-event-store.ts';
import { appendOne, logOf, relaying as relayingOver, untilReady } from '../support/relaying.ts';
import { until } from '../support/until.ts';

// A broker takes some seconds to make topics, and a busy machine is no failure.
/** What the relay writes to: the feed, and the document of its checkpoint as the next start opens it. */
type RelayDriver = Driver & Pick<FeedDriver, 'make'> & { document(): () => KeyDocument };

/** All in one partition, where each message takes the number after the one before. */
const IDS = Array.from({ length: 100 }, (_, n) => `pay_${n}`).filter(
  (id) => partitionOf(id, 6) === 0,
);
const [A = '', B = '', C = '', D = '', LATER = '', ...MORE] = IDS;
const PARKED = [A, B, C];

export const describeRelayRetry = (driver: RelayDriver): void =>
  describeDriver('parked payments sent again', driver, () => {
    let store: MemoryEventStore;
    let made: FeedUnderTest;
    let openDocument: () => KeyDocument;
    let stored: number;
    /** How many more sends are acknowledged; each later one is stored without an acknowledgement. */
    let acknowledged: number;
    /** Sends wait for this before they are acknowledged or not. */
    let response: Promise<void>;
    /** Batches that the relay has taken from the log. */
    let taken: number;

    const openFeed = (): EventFeed => {
      const feed = made.open();
      const publish: EventFeed['publish'] = async (topic, messages) => {
        await feed.publish(topic, messages);
        if (topic === 'events') stored += messages.length;
        await response;
        acknowledged -= 1;
        if (acknowledged < 0) throw new FeedUnavailable('the acknowledgement was lost');
      };
      return { ...feed, publish };
    };

    const openLog = (): MemoryEventStore => ({
      ...store,
      subscribe: async function* (after, signal) {
        for await (const item of store.subscribe(after, signal)) {
          if (item.kind === 'events') taken += 1;
          yield item;
        }
      },
    });

    /** A document whose relay is killed at its save number `savesLeft` and at each one after it. */
    const killedAfter = (savesLeft: () => number): KeyDocument => {
      const document = openDocument();
      const save: KeyDocument['save'] = async (text, version) => {
        if (savesLeft() > 0) return document.save(text, version);
        throw new Error('killed here');
      };
      return { ...document, save };
    };

    const relaying = (check: (relay: Relay) => Promise<void>, checkpoint = openDocument()) =>
      relayingOver({ store: openLog(), feed: openFeed(), checkpoint }, check);
    const untilSent = (relay: Relay): Promise<void> =>
      until(
        'the relay runs, and its checkpoint is at the end of the log',
        async () =>
          relay.status().state === 'running' &&
          relay.status().checkpoint === (await logOf(store)).at(-1)?.position,
      );
    const untilNoneParked = (relay: Relay): Promise<void> =>
      until('nothing is parked', () => relay.status().parked === 0);
    /** The relay with three parked payments, which could be sent by now. */
    const withParked = (check: (relay: Relay) => Promise<void>, checkpoint = openDocument()) =>
      relaying(async (relay) => {
        await untilSent(relay);
        await untilReady(relay);
        expect(relay.status().parked).toBe(PARKED.length);
        for (const id of PARKED) store.mend(streamOf(id));
        await check(relay);
      }, checkpoint);
    const expectAllSent = async (): Promise<void> =>
      expectWhole(await made.read('events', stored), await logOf(store));

    beforeEach(async () => {
      store = memoryEventStore({ batchMax: 7 });
      made = await driver.make();
      openDocument = driver.document();
      stored = 0;
      acknowledged = Number.POSITIVE_INFINITY;
      response = Promise.resolve();
      taken = 0;
      await appendLives(store, [...PARKED, D]);
      for (const id of PARKED) store.damage(streamOf(id), 2, 'of a later version');
    });
    afterEach(() => made.remove());

    test('one is sent, in order and with what came after it; the others wait on', async () => {
      await withParked(async (relay) => {
        expect(await relay.retryParked(B)).toEqual([{ paymentId: B, sent: true }]);
        expect(Object.keys(await relay.parked())).toEqual([A, C]);
        expect(await relay.retryParked(B)).toEqual([]);
        const messages = await made.read('events', stored);
        const sentOf = (id: string) => messages.filter(({ key }) => key === id).length;
        expect([...PARKED, D].map(sentOf)).toEqual([2, LIFE, 2, LIFE]);
        expect(await relay.retryParked()).toHaveLength(2);
        await appendLives(store, [LATER]);
        await untilSent(relay);
        expect(relay.status()).toMatchObject({ parked: 0, counts: { restarts: 0 } });
      });
      await expectAllSent();
    });

    test('one that still cannot be sent stays parked, with the new reason and behind the others', async () => {
      await withParked(async (relay) => {
        store.damage(streamOf(A), 3, 'changed on the disk');
        const before = (await relay.parked())[A];
        const found = await relay.retryParked(A);
        expect(found).toEqual([
          { paymentId: A, sent: false, at: 2, reason: expect.stringContaining('changed') },
        ]);
        const notes = await relay.parked();
        expect(Object.keys(notes)).toEqual([B, C, A]);
        expect(notes[A]).toEqual({ ...before, reason: expect.stringContaining('changed') });
        store.mend(streamOf(A));
        await relay.retryParked();
      });
      await expectAllSent();
    });

    test('events that come meanwhile, the same payments’ too, are sent after what waits', async () => {
      await appendOne(store, LATER, 0);
      store.damage(streamOf(LATER), 0, 'of a later version');
      await relaying(async (relay) => {
        await untilSent(relay);
        await untilReady(relay);
        for (const id of [...PARKED, LATER]) store.mend(streamOf(id));
        for (let revision = 1; revision < LIFE; revision += 1) {
          const retry = relay.retryParked(revision % 2 === 0 ? undefined : LATER);
          await appendOne(store, LATER, revision);
          await appendLives(store, MORE.slice(revision, revision + 1));
          await retry;
        }
        await untilSent(relay);
        expect(relay.status().parked).toBe(0);
      });
      await expectAllSent();
    });

    test('killed between a message and the checkpoint, at each place: messages come twice, none is missing', async () => {
      for (let saves = 0; saves <= 2 * PARKED.length; saves += 1) {
        let isRetrying = false;
        let left = saves;
        const savesLeft = () => (isRetrying ? left-- : 1);
        const outcomes: unknown[] = [];
        await withParked(async (relay) => {
          isRetrying = true;
          // Not the first of those parked: a start that began with another one would number anew.
          outcomes.push(await relay.retryParked(C).catch((error: unknown) => error));
          outcomes.push(await relay.retryParked().catch((error: unknown) => error));
          await appendLives(store, MORE.slice(saves, saves + 1));
        }, killedAfter(savesLeft));
        // Each of three payments is named before its messages leave, and done after them.
        const killed = outcomes.filter((outcome) => outcome instanceof RelayNotReady);
        expect(killed.length === 0).toBe(saves === 2 * PARKED.length);
        await relaying(async (relay) => {
          await untilSent(relay);
          await untilNoneParked(relay);
        });
        await expectAllSent();
        await made.remove();
        made = await driver.make();
        openDocument = driver.document();
        stored = 0;
        for (const id of PARKED) store.damage(streamOf(id), 2, 'of a later version');
      }
    });

    test('a lost acknowledgement is said to who requested it, and a batch that waits behind it is sent after what was lost', async () => {
      await withParked(async (relay) => {
        acknowledged = 1;
        const { promise, resolve } = Promise.withResolvers<void>();
        response = promise;
        const before = taken;
        const retry = relay.retryParked(C);
        await appendOne(store, LATER, 0);
        await until('the batch waits', () => taken > before);
        resolve();
        await expect(retry).rejects.toThrow(/interrupted.*acknowledgement was lost/);
        acknowledged = Number.POSITIVE_INFINITY;
        await untilSent(relay);
        await untilNoneParked(relay);
      });
      await expectAllSent();
    });

    test('a batch without acknowledgement is sent again before a parked payment, which waits for it', async () => {
      await withParked(async (relay) => {
        acknowledged = 1;
        const { promise, resolve } = Promise.withResolvers<void>();
        response = promise;
        const before = taken;
        await appendOne(store, LATER, 0);
        await until('the batch is under way', () => taken > before);
        const retry = relay.retryParked(C);
        resolve();
        await expect(retry).rejects.toThrow(/once it has caught up/);
        acknowledged = Number.POSITIVE_INFINITY;
        await untilSent(relay);
        await untilNoneParked(relay);
      });
      await expectAllSent();
    });
  });
