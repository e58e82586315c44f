/**
 * Keeps how far each endpoint is and its last attempts, apart from the read models: after their wipe or rebuild
 * no message is sent again. Every driver keeps these promises (test/webhooks/describe-delivery-store.ts):
 * - A row changes as a whole, and only for a writer that saw its last change.
 * - The attempts of a save are there exactly when its row is or, without transactions, soon after it.
 * - The last 1,000 attempts of an endpoint are kept, the latest read first.
 */
import type { Attempt } from '../delivery/delivery-row.ts';

/** Of an endpoint. */
export const ATTEMPTS_MAX = 1_000;

/** At most `limit`, with numbers below `before`. */
type Search = { limit: number; eventId?: string | undefined; before?: number | undefined };

export type DeliveryStore = {
  /** The last row saved of an endpoint. Throws where the engine is out of reach. */
  load(endpointId: string): Promise<{ version: number; text: string } | undefined>;
  /**
   * Replaces the row, raises its version by one and adds the attempts. False, and nothing changed, where the
   * stored version is not `expectedVersion` (0: no row yet). Throws where it is unknown whether it was saved.
   */
  save(
    endpointId: string,
    text: string,
    expectedVersion: number,
    attempts: readonly Attempt[],
  ): Promise<boolean>;
  /** The latest first; later ones have higher numbers. */
  attempts(endpointId: string, search: Search): Promise<{ number: number; attempt: Attempt }[]>;
  /** Forgets an endpoint that was deleted. */
  remove(endpointId: string): Promise<void>;
  close(): Promise<void>;
};
