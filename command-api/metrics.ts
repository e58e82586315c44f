/** The command side's figures that are read when somebody scrapes. */
import type { Metrics } from '../shared/runtime/metrics.ts';
import type { CommandSide } from './compose.ts';

export const watchCommandMetrics = (
  metrics: Metrics,
  { provider, recovery }: Pick<CommandSide, 'provider' | 'recovery'>,
): void => {
  metrics.beforeScrape(() => {
    metrics.breakerOpen.set(Number(provider.breakerOpen()));
    const { count, oldestSeconds } = recovery.unresolved();
    metrics.unresolved.set(count);
    metrics.unresolvedOldestSeconds.set(oldestSeconds);
  });
};
