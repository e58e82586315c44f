/** The figures that are read when somebody scrapes, each from the one who knows it. */
import type { GuardedProvider } from '../command-api/provider/guard.ts';
import type { Recovery } from '../command-api/recovery.ts';
import type { Projector } from '../projector/app.ts';
import type { SqliteEventStore } from '../shared/event-store/sqlite.ts';
import type { Metrics } from '../shared/metrics.ts';

export type Sources = {
  store: SqliteEventStore;
  projector: Projector;
  recovery: Recovery;
  provider: GuardedProvider;
};

export const watchFigures = (metrics: Metrics, sources: Sources): void => {
  const { store, projector, recovery, provider } = sources;
  let commitsSeen = 0;
  metrics.beforeScrape(() => {
    metrics.breakerOpen.set(Number(provider.breakerOpen()));
    const { commits } = store.stats();
    metrics.appendBatches.add(commits - commitsSeen);
    commitsSeen = commits;
    metrics.headPosition.set(Number(store.lastPosition() ?? 0));
    const { count, oldestSeconds } = recovery.unresolved();
    metrics.unresolved.set(count);
    metrics.unresolvedOldestSeconds.set(oldestSeconds);
    const { checkpoint, parked } = projector.status();
    metrics.projectionPosition.set({ projection: 'payments' }, Number(checkpoint ?? 0));
    metrics.deadLetters.set(parked);
  });
  metrics.beforeScrape(async () => {
    const { events, seconds } = await projector.lag();
    metrics.projectionLagEvents.set(events);
    metrics.projectionLagSeconds.set(seconds);
  });
};
