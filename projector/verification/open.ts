/** Opens the scheduled verification as the settings say. */
import type { Config } from '../../shared/runtime/config.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { Metrics } from '../../shared/runtime/metrics.ts';
import type { Projector } from '../compose.ts';
import { openKeyDocument } from '../key-document/open.ts';
import {
  type ScheduledVerification,
  startVerification,
  type VerificationOptions,
} from './schedule.ts';

export type OpenVerification = {
  config: Pick<Config, 'mongoUrl' | 'verifyEveryMs'>;
  store: VerificationOptions['store'];
  readModels: VerificationOptions['readModels'];
  /** The path of a file in the data folder; not called where the read models are in MongoDB. */
  fileOf(name: string): string;
  log: Logger;
  metrics: Metrics;
  /** The public key whose seals are trusted; left out where this process has none. */
  sealingKey?: string | undefined;
  /** The heads that are kept outside the log, as they are now. */
  keptHeads?: VerificationOptions['keptHeads'];
  /** The process whose projector has the lease verifies. */
  projector: Pick<Projector, 'status' | 'checkIndexes'>;
};

/** Starts the schedule. An engine out of reach does not delay the start. */
export const openVerification = async (
  options: OpenVerification,
): Promise<ScheduledVerification> => {
  const { config, store, readModels, log, metrics, projector } = options;
  const { sealingKey, keptHeads } = options;
  return startVerification({
    store,
    readModels,
    sealingKey,
    keptHeads,
    metrics,
    logger: log,
    document: await openKeyDocument(options, 'log-verification'),
    everyMs: config.verifyEveryMs,
    checkIndexes: projector.checkIndexes,
    mayRun: () => projector.status().state !== 'standing-by',
  });
};
