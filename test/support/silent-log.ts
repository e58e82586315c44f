import { createLogger, type Logger } from '../../shared/runtime/log.ts';

/** A log without a reader. */
export const silent: Logger = { info: () => {}, warn: () => {}, error: () => {} };

/** The log of a whole service, without a reader. */
export const { log: silentLog } = createLogger({ level: 'silent', destination: 'stdout' });
