import type { Logger } from '../../shared/runtime/log.ts';

/** A log that nobody reads. */
export const silent: Logger = { info: () => {}, warn: () => {}, error: () => {} };
