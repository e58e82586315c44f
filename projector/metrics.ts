/** The projection's metrics that are read when somebody scrapes. */
import type { Metrics } from '../shared/runtime/metrics.ts';
import type { Projector } from './compose.ts';

/** A position begins with a number that grows; as a figure, never computed with. */
const metricOf = (position: string | null): number => Number.parseInt(position ?? '0', 10);

export const watchProjectionMetrics = (metrics: Metrics, projector: Projector): void => {
  metrics.beforeScrape(async () => {
    const { checkpoint, parked } = projector.status();
    metrics.projectionPosition.set({ projection: 'payments' }, metricOf(checkpoint));
    metrics.parked.set(parked);
    const { done = 0, total = 0 } = projector.rebuilds.latest() ?? {};
    metrics.rebuildRatio.set(total === 0 ? 0 : done / total);
    const { events, seconds, head } = await projector.lag();
    metrics.headPosition.set(metricOf(head));
    metrics.projectionLagEvents.set(events);
    metrics.projectionLagSeconds.set(seconds);
  });
};
