/** The metrics of deliveries. None has a label for an endpoint or a merchant. */
import type { EngineState } from '../../shared/http/server/health.ts';
import type { Metrics } from '../../shared/runtime/metrics.ts';
import type { Attempt } from '../../shared/webhooks/delivery-row.ts';
import type { Deliverer } from './deliverer.ts';

/** Counts an attempt. */
export const onAttemptOf =
  (metrics: Metrics) =>
  ({ outcome, latencyMs }: Pick<Attempt, 'outcome' | 'latencyMs'>): void => {
    metrics.webhookAttempts.inc({ outcome });
    metrics.webhookSeconds.observe(latencyMs / 1000);
  };

/** Sets the metrics of a deliverer at every scrape. */
export const watchDelivererMetrics = (metrics: Metrics, deliverer: Deliverer): void =>
  metrics.beforeScrape(() => {
    const { endpoints, oldestWaitingMs } = deliverer.status();
    for (const [status, count] of Object.entries(endpoints))
      metrics.webhookEndpoints.set({ status }, count);
    const waitsMs = oldestWaitingMs === null ? 0 : Date.now() - oldestWaitingMs;
    metrics.webhookOldestSeconds.set(Math.max(0, waitsMs) / 1000);
  });

/** Never makes a process unready: neither commands nor reads need an endpoint. */
export const delivererState = (deliverer: Deliverer): EngineState => {
  const { state, error } = deliverer.status();
  return { state, ...(error === undefined ? {} : { reason: error }) };
};
