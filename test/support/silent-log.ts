import type { Logger } from '../../shared/runtime/logger.ts';

/** A log that nobody reads. */
export const silent: Logger = { info: () => {}, warn: () => {}, error: () => {} };
