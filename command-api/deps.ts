/** What the commands of the command side are given to work with. */
import type { MerchantRules } from '../shared/payment/commands.ts';
import type { Logger } from '../shared/runtime/logger.ts';
import type { Queues } from '../shared/runtime/queues.ts';
import type { Identities } from './idempotency.ts';
import type { InFlight } from './in-flight.ts';
import type { PaymentLog } from './payment-log.ts';
import type { Provider } from './provider/port.ts';
import type { Unresolved } from './recovery/unresolved.ts';
import type { ReferenceClaims } from './reference-claims.ts';

export type CommandDeps = {
  paymentLog: PaymentLog;
  provider: Provider;
  queues: Queues;
  inFlight: InFlight;
  unresolved: Unresolved;
  /** See ProviderAhead (gaps §17). */
  isLevel(): boolean;
  identities: Identities;
  claims: ReferenceClaims;
  /**
   * True where other processes append to the same store: what this process last saw of a payment
   * may then be old, and calls may be running that this process knows nothing of.
   */
  sharedStore: boolean;
  rulesOf(merchantId: string): MerchantRules;
  /** The names of the provider that is set (ADR-0247). */
  providers: readonly string[];
  /** `MAX_OPERATIONS_PER_PAYMENT` (gaps §18). */
  operationsMax: number;
  /** Wall clock in milliseconds. */
  nowMs(): number;
  logger: Logger;
};
