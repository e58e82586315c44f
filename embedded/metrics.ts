/** Metrics of the embedded event store. */
import type { OpenedStore } from '../shared/open-drivers.ts';
import type { Metrics } from '../shared/runtime/metrics.ts';

/** Counts the commits that made events durable, read from the store at each scrape. */
export const watchCommits = (metrics: Metrics, store: Pick<OpenedStore, 'commits'>): void => {
  let commitsSeen = 0;
  metrics.beforeScrape(() => {
    const commits = store.commits() ?? commitsSeen;
    metrics.appendBatches.inc(commits - commitsSeen);
    commitsSeen = commits;
  });
};
