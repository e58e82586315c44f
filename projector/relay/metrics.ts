/** The relay in the response of /health/ready, and its metrics at a scrape. */
import type { EngineState } from '../../shared/http/server/health.ts';
import type { Metrics } from '../../shared/runtime/metrics.ts';
import { TOPICS } from '../event-feed/port.ts';
import type { Relay } from './relay.ts';

/** Never makes a process unready: commands and reads do not need the broker. */
export const relayState = (relay: Relay): EngineState => {
  const { state, parked, error } = relay.status();
  if (state === 'off') return { state };
  return { state, parked, ...(error === undefined ? {} : { reason: error }) };
};

/** Sets the metrics of a relay at every scrape. */
export const watchRelayMetrics = (metrics: Metrics, relay: Relay): void => {
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
