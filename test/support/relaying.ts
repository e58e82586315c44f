/** A relay over a log, a feed and a checkpoint in memory, and how far it is. */
import type { RecordedEvent } from '../../shared/event-store/port.ts';
import { streamOf } from '../../shared/payment/events.ts';
import { type Relay, type RelayOptions, startRelay } from '../../topics/relay.ts';
import { type MemoryEventStore, memoryEventStore } from './memory-event-store.ts';
import { memoryDocument, memoryFeed } from './memory-feed.ts';
import { newEvent, wholeLife } from './payment-events.ts';
import { silent } from './silent-log.ts';
import { succeeds, until } from './until.ts';

export const appendOne = async (
  store: MemoryEventStore,
  paymentId: string,
  revision: number,
): Promise<void> => {
  const event = wholeLife(paymentId, `m_${paymentId}`)[revision];
  const stream = streamOf(paymentId);
  const last = revision === 0 ? undefined : (await store.readStream(stream)).at(-1);
  if (event === undefined) throw new Error('no such event');
  await store.append(stream, last ?? 'none', [newEvent(event)]);
};

export const openParts = (batchMax = 7) => ({
  store: memoryEventStore({ batchMax }),
  feed: memoryFeed(),
  checkpoint: memoryDocument(),
});
export type Parts = ReturnType<typeof openParts>;

export const logOf = async (store: MemoryEventStore): Promise<RecordedEvent[]> =>
  (await store.readAll(null, 100_000)) as RecordedEvent[];

type RelayParts = Pick<RelayOptions, 'store' | 'feed' | 'checkpoint'>;

export const startOver = (parts: RelayParts, options: Partial<RelayOptions> = {}): Relay =>
  startRelay({
    ...{ ...parts, logger: silent, mayRun: () => true, backOff: { minMs: 1, maxMs: 8 } },
    ...options,
  });

export const relaying = async (
  parts: RelayParts,
  check: (relay: Relay) => Promise<void>,
  options: Partial<RelayOptions> = {},
): Promise<void> => {
  const relay = startOver(parts, options);
  try {
    await check(relay);
  } finally {
    await relay.stop();
  }
};

/** Its checkpoint is at the end of the log. */
export const untilSent = ({ store }: Pick<Parts, 'store'>, relay: Relay): Promise<void> =>
  until(
    'all is sent',
    async () => relay.status().checkpoint === (await logOf(store)).at(-1)?.position,
  );

export const untilRunning = (relay: Relay): Promise<void> =>
  until('running', () => relay.status().state === 'running');

export const untilHalted = (relay: Relay): Promise<void> =>
  until('halted', () => relay.status().state === 'halted');

/** It has tried what was parked at its start, and takes requests. */
export const untilReady = (relay: Relay): Promise<void> =>
  until('the relay takes requests', () => succeeds(relay.retryParked('pay_none')));
