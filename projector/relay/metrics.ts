/** The relay as its operators see it: in /health/ready, and when somebody scrapes. */
import type { EngineState } from '../../shared/http/server/health.ts';
import type { Metrics } from '../../shared/runtime/metrics.ts';
import { TOPICS } from '../event-feed/port.ts';
import type { Relay } from './relay.ts';

/** A broker that is away makes no process unready: commands and reads do without it. */
export const relayState = (relay: Relay): EngineState => {
  const { state, parked, error } = relay.status();
  if (state === 'off') return { state };
  return { state, parked, ...(error === undefined ? {} : { reason: error }) };
};

export const watchRelayMetrics = (metrics: Metrics, relay: Relay): void => {
  let seen = 0;
  metrics.beforeScrape(async () => {
    const { parked, counts } = relay.status();
    metrics.relayParked.set(parked);
    metrics.relayPublished.add(counts.published - seen);
    seen = counts.published;
    const lag = await relay.lag();
    if (lag === undefined) return;
    for (const topic of TOPICS) metrics.relayLagEvents.set({ topic }, lag.events);
  });
};
