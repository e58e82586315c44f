/** The embedded store's own figure: how many commits its appends came to. */

import type { OpenedStore } from '../shared/open-drivers.ts';
import type { Metrics } from '../shared/runtime/metrics.ts';

export const watchCommits = (metrics: Metrics, store: Pick<OpenedStore, 'commits'>): void => {
  let commitsSeen = 0;
  metrics.beforeScrape(() => {
    const commits = store.commits() ?? commitsSeen;
    metrics.appendBatches.add(commits - commitsSeen);
    commitsSeen = commits;
  });
};
