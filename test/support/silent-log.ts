import type { Logger } from '../../shared/runtime/log.ts';

/** A log without a reader. */
export const silent: Logger = { info: () => {}, warn: () => {}, error: () => {} };
