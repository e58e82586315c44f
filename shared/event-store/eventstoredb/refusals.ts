/**
 * Knows that the server refuses the log to a subscription: no right to read $all, a password that was
 * changed. A refusal does not end by itself, so health says so, which asks for no read of $all itself.
 */
import { callOutcomeOf, unavailable } from './call-outcome.ts';
import type { SourceListener } from './subscription.ts';

/** Nothing is refused at first. */
export function createRefusals() {
  let refusal: unknown;
  return {
    /** Throws StoreUnavailable from a refused subscription on until one is answered. */
    rejectRefused(): void {
      if (refusal !== undefined) throw unavailable(refusal);
    },
    /** The listener, of which what the server says is noted. */
    heard: (listener: SourceListener): SourceListener => ({
      ...listener,
      sign: () => {
        refusal = undefined;
        listener.sign();
      },
      ended: (ending) => {
        const { error } = ending;
        if (error !== undefined && callOutcomeOf(error) === 'refused') refusal = error;
        listener.ended(ending);
      },
    }),
  };
}
