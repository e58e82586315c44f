import { numberOf } from '../shared/event-store/log-progress.ts';
import type { EngineState } from '../shared/http/server/health.ts';
import type { Metrics } from '../shared/runtime/metrics.ts';
import type { Projector } from './compose.ts';

export const projectionState = (projector: Pick<Projector, 'status'>): EngineState => {
  const { state, caughtUp, parked, stuck, error } = projector.status();
  return {
    state: stuck ? 'stuck' : state,
    caughtUp,
    parked,
    ...(error === undefined ? {} : { reason: error }),
  };
};

/** Where `lag` throws StoreUnavailable, the older values stay. */
export const watchProjectionMetrics = (metrics: Metrics, projector: Projector): void => {
  let counted = 0;
  metrics.beforeScrape(async () => {
    const { checkpoint, parked, compared } = projector.status();
    metrics.readModelSamples.inc(compared.samples - counted);
    counted = compared.samples;
    metrics.readModelDifferences.set(compared.differences);
    metrics.projectionPosition.set({ projection: 'payments' }, numberOf(checkpoint));
    metrics.parked.set(parked);
    const { done = 0, total = 0 } = projector.rebuilds.latest() ?? {};
    metrics.rebuildRatio.set(total === 0 ? 0 : done / total);
    const { events, seconds, head } = await projector.lag();
    metrics.headPosition.set(numberOf(head));
    metrics.projectionLagEvents.set(events);
    metrics.projectionLagSeconds.set(seconds);
  });
};
