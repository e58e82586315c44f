import type { KeyStore } from '../personal-data/port.ts';
import type { EventStore } from '../shared/event-store/port.ts';
import type { Identities } from '../shared/http/idempotency.ts';
import type { AskDeps } from './recovery/ask.ts';
import type { Unresolved } from './recovery/unresolved.ts';

export type CommandDeps = AskDeps & {
  unresolved: Unresolved;
  /** Serves the claims of merchant references alone: payments belong to `paymentLog`. */
  store: Pick<EventStore, 'append' | 'readStream'>;
  isLevel(): boolean;
  identities: Identities;
  keys: Pick<KeyStore, 'take'>;
  /** Other processes append to it: what this process last saw of a payment may be old. */
  sharedStore: boolean;
  providers: readonly string[];
  operationsMax: number;
};
