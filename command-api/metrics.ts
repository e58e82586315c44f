import type { ResilientProvider } from '../providers/resilience.ts';
import { within } from '../shared/runtime/back-off.ts';
import type { Metrics } from '../shared/runtime/metrics.ts';
import type { attentionSources } from './back-office/attention/items.ts';
import type { ProviderAhead } from './back-office/provider-ahead/provider-ahead.ts';
import type { LogTail } from './recovery/log-tail.ts';
import type { Unresolved } from './recovery/unresolved.ts';

export const watchMetrics = (
  metrics: Metrics,
  side: {
    provider: Pick<ResilientProvider, 'breakerOpen'>;
    providerAhead: Pick<ProviderAhead, 'now'>;
    unresolved: Pick<Unresolved, 'metrics'>;
    tail: Pick<LogTail, 'clockSkewSeconds'> | undefined;
  },
): void =>
  metrics.beforeScrape(() => {
    metrics.breakerOpen.set(Number(side.provider.breakerOpen()));
    metrics.clockSkewSeconds.set(side.tail?.clockSkewSeconds() ?? 0);
    metrics.providerAhead.set(Number(side.providerAhead.now() !== undefined));
    const unresolved = side.unresolved.metrics();
    metrics.atOtherProvider.set(unresolved.atOtherProvider);
    metrics.unconfirmed.set(unresolved.unconfirmed);
    metrics.contradicted.set(unresolved.contradicted);
    metrics.unresolved.set(unresolved.count);
    metrics.unresolvedOldestSeconds.set(unresolved.oldestSeconds);
  });

/** A scrape is not to wait for an engine that is out of reach. */
const LISTING_MS_MAX = 2_000;

/** Where a source cannot be read, its older values stay. */
export const watchAttention = (
  metrics: Metrics,
  sources: ReturnType<typeof attentionSources>,
): void => {
  const late = () => new Error('the items took too long');
  for (const { reasons, items } of sources)
    metrics.beforeScrape(async () => {
      const found = Map.groupBy(
        await within(LISTING_MS_MAX, items('*'), late),
        ({ reason }) => reason,
      );
      for (const reason of reasons) {
        const own = found.get(reason) ?? [];
        const agesMs = own.map(({ since }) => Date.now() - Date.parse(since));
        metrics.attention.set({ reason }, own.length);
        metrics.attentionOldestSeconds.set({ reason }, Math.max(0, ...agesMs) / 1000);
      }
    });
};
