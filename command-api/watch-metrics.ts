/** The metrics of the command side that are read at a scrape. */
import type { Metrics } from '../shared/runtime/metrics.ts';
import type { CommandSide } from './compose.ts';

/** Reads the state of the provider and what is unresolved at each scrape. */
export const watchCommandMetrics = (
  metrics: Metrics,
  {
    provider,
    providerAhead,
    unresolved,
    followTail,
  }: Pick<CommandSide, 'provider' | 'providerAhead' | 'unresolved' | 'followTail'>,
): void => {
  const tail = followTail();
  metrics.beforeScrape(() => {
    metrics.breakerOpen.set(Number(provider.breakerOpen()));
    metrics.clockSkewSeconds.set(tail?.clockSkewSeconds() ?? 0);
    metrics.providerAhead.set(Number(providerAhead.now() !== undefined));
    const { count, oldestSeconds, unconfirmed, contradicted, atOtherProvider } =
      unresolved.metrics();
    metrics.atOtherProvider.set(atOtherProvider);
    metrics.unconfirmed.set(unconfirmed);
    metrics.contradicted.set(contradicted);
    metrics.unresolved.set(count);
    metrics.unresolvedOldestSeconds.set(oldestSeconds);
  });
};
