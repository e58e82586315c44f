import type { RecordedEvent } from '../shared/event-store/port.ts';
import { within } from '../shared/runtime/back-off.ts';
import type { Metrics } from '../shared/runtime/metrics.ts';
import { ATTENTION_REASONS, type AttentionItem } from './attention/contract.ts';
import { REJECTIONS, type ResilientProvider } from './provider/resilience.ts';
import type { ProviderAhead } from './provider-ahead/provider-ahead.ts';
import type { LogTail } from './recovery/log-tail.ts';
import type { Unresolved } from './recovery/unresolved.ts';
import type { CommandResponse } from './responses.ts';

export const recordMetrics = (metrics: Metrics) => {
  // An alert on the increase of a counter that begins at 1 would miss the first rejection.
  for (const reason of REJECTIONS) metrics.providerRejections.inc({ reason }, 0);
  return {
    onConflict: (): void => metrics.appendConflicts.inc(),
    onAppended: (events: readonly RecordedEvent[]): void => {
      for (const { event } of events) metrics.eventsAppended.inc({ type: event.type });
    },
    onCardLikeText: (): void => metrics.cardLikeTexts.inc(),
    onCall: (operation: string, outcome: string, seconds: number): void =>
      metrics.providerSeconds.observe({ operation, outcome }, seconds),
    onRejection: (reason: string): void => metrics.providerRejections.inc({ reason }),
    onCommand: (command: string, outcome: CommandResponse['outcome'], seconds: number): void => {
      metrics.commands.inc({ command, outcome });
      metrics.commandSeconds.observe({ command }, seconds);
    },
  };
};

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

/** Where the items cannot be read, the older values stay. */
export const watchAttention = (metrics: Metrics, list: () => Promise<AttentionItem[]>): void =>
  metrics.beforeScrape(async () => {
    const late = () => new Error('the items took too long');
    const byReason = Map.groupBy(await within(LISTING_MS_MAX, list(), late), (one) => one.reason);
    for (const reason of ATTENTION_REASONS) {
      const [oldest, ...others] = byReason.get(reason) ?? [];
      const ageMs = oldest === undefined ? 0 : Date.now() - Date.parse(oldest.since);
      metrics.attention.set({ reason }, oldest === undefined ? 0 : 1 + others.length);
      metrics.attentionOldestSeconds.set({ reason }, ageMs / 1000);
    }
  });
