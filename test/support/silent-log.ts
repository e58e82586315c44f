import type { Log } from '../../projector/subscription.ts';

/** A log that nobody reads. */
export const silent: Log = { info: () => {}, warn: () => {}, error: () => {} };
