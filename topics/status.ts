import type { Position } from '../shared/event-store/port.ts';
import type { EngineState } from '../shared/http/server/health.ts';
import type { Metrics } from '../shared/runtime/metrics.ts';
import type { Lag } from '../shared/subscription/lag.ts';
import { TOPICS } from './port.ts';

export const RELAY_STATES = [
  /** No broker is set: nothing is sent. */
  'off',
  'starting',
  'standing-by',
  'running',
  /** The broker or the store is out of reach; the relay tries again without end. */
  'backing-off',
  /** Until an operator acts; `error` says why. */
  'halted',
  'stopped',
] as const;
export type RelayState = (typeof RELAY_STATES)[number];

export type RelayStatus = {
  state: RelayState;
  error?: string;
  checkpoint: Position | null;
  parked: number;
  counts: { published: number; restarts: number };
};

type Measured = { status(): RelayStatus; lag(): Promise<Lag | undefined> };

/** Commands and reads do not need the broker. */
export const relayState = (relay: Pick<Measured, 'status'>): EngineState => {
  const { state, parked, error } = relay.status();
  if (state === 'off') return { state };
  return { state, parked, ...(error !== undefined && { reason: error }) };
};

export const watchRelayMetrics = (metrics: Metrics, relay: Measured): void => {
  let counted = 0;
  metrics.beforeScrape(async () => {
    const { parked, counts } = relay.status();
    metrics.relayParked.set(parked);
    metrics.relayPublished.inc(counts.published - counted);
    counted = counts.published;
    const lag = await relay.lag();
    if (lag === undefined) return;
    for (const topic of TOPICS) metrics.relayLagEvents.set({ topic }, lag.events);
  });
};
