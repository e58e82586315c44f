/** How deliveries are: for health, and for metrics, which name no endpoint and no merchant. */
import type { EngineState } from '../../shared/http/server/health.ts';
import type { Metrics } from '../../shared/runtime/metrics.ts';
import { type Attempt, type DeliveryRow, statusOf } from '../../shared/webhooks/delivery-row.ts';
import type { Endpoint } from '../../shared/webhooks/endpoints.ts';

/** `HALTED`: the log does not fit what was sent, or the endpoint's events cannot be read. */
type EndpointState = ReturnType<typeof statusOf> | 'HALTED';

export type EndpointsStatus = {
  /** A merchant whose events cannot be read counts as one that is halted. */
  endpoints: Record<EndpointState, number>;
  /** Of the oldest event that an enabled endpoint has not accepted. */
  oldestWaitingMs: number | null;
};

export type DelivererStatus = EndpointsStatus & {
  state: 'standing-by' | 'idle' | 'running' | 'backing-off' | 'stopped';
  error?: string;
};

type Loop = {
  endpoint: Pick<Endpoint, 'disabled'>;
  delivery: { row: DeliveryRow };
  isHalted: boolean;
};

export const endpointsStatus = (
  merchants: readonly { loops: ReadonlyMap<string, Loop>; isHalted: boolean }[],
): EndpointsStatus => {
  const halted = merchants.filter(({ isHalted }) => isHalted).length;
  const endpoints = { ENABLED: 0, FAILING: 0, DISABLED: 0, HALTED: halted };
  const waits: number[] = [];
  for (const { endpoint, delivery, isHalted } of merchants.flatMap(({ loops }) => [
    ...loops.values(),
  ])) {
    const status = isHalted ? 'HALTED' : statusOf(endpoint, delivery.row);
    const { oldestWaiting } = delivery.row;
    endpoints[status] += 1;
    if (oldestWaiting !== null && (status === 'ENABLED' || status === 'FAILING'))
      waits.push(oldestWaiting);
  }
  return { endpoints, oldestWaitingMs: waits.length === 0 ? null : Math.min(...waits) };
};

type WithStatus = { status(): DelivererStatus };

/** Neither commands nor reads need an endpoint. */
export const delivererState = (deliverer: WithStatus): EngineState => {
  const { state, error } = deliverer.status();
  return { state, ...(error === undefined ? {} : { reason: error }) };
};

export const countAttempt =
  (metrics: Metrics) =>
  ({ outcome, latencyMs }: Pick<Attempt, 'outcome' | 'latencyMs'>): void => {
    metrics.webhookAttempts.inc({ outcome });
    metrics.webhookSeconds.observe(latencyMs / 1000);
  };

export const watchDelivererMetrics = (metrics: Metrics, deliverer: WithStatus): void =>
  metrics.beforeScrape(() => {
    const { endpoints, oldestWaitingMs } = deliverer.status();
    for (const [status, count] of Object.entries(endpoints))
      metrics.webhookEndpoints.set({ status }, count);
    const waitsMs = oldestWaitingMs === null ? 0 : Date.now() - oldestWaitingMs;
    metrics.webhookOldestSeconds.set(Math.max(0, waitsMs) / 1000);
  });
