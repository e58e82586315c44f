/** What a sealer is opened with, and what is there once it is open. */
import type { EventStore } from '../../shared/event-store/port.ts';
import type { HeadFile } from '../../shared/event-store/seals.ts';
import type { Config } from '../../shared/runtime/config.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { RunningHash } from './running-hash.ts';
import type { Sealer } from './sealer.ts';

export type OpenSealer = {
  config: Pick<Config, 'seals'>;
  store: EventStore;
  /** The path of a file in the data folder; left out where there is none. */
  fileOf?: ((name: string) => string) | undefined;
  log: Logger;
};

/** The sealer, the public key whose seals are trusted, and the heads that are kept beside the key. */
export type OpenedSealer = Sealer & {
  publicKey: string | undefined;
  keptHeads(): HeadFile | undefined;
  /** For the projector, where the store keeps no chain over the log. */
  running?: RunningHash;
};
