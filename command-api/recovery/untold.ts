/** What the provider knows and no notice told: looked for by the schedule of the comparison (gaps §15). */
import type { KnownDispute } from '../../providers/port.ts';
import { type PaymentState, unresolvedOperations } from '../../shared/payment/state.ts';
import { providerUnavailable } from '../back-office/reconcile/reconcile.ts';
import type { CommandDeps } from '../deps.ts';
import { askAndLog } from './later-results.ts';

/** What a comparison found and no notice told: true where it is recorded now. Never throws. */
export const askAboutUntold = async (
  deps: CommandDeps,
  paymentIds: ReadonlySet<string>,
): Promise<boolean> => {
  let recorded = false;
  for (const paymentId of paymentIds)
    recorded = (await askAndLog(deps, paymentId)) === 'recorded' || recorded;
  return recorded;
};

/** Disputes that the log has otherwise, or not at all. Throws Error where the provider does not list them. */
export const untoldDisputes = async ({
  provider,
  paymentLog,
}: CommandDeps): Promise<KnownDispute[]> => {
  const untold: KnownDispute[] = [];
  for (const dispute of await provider.disputes()) {
    const payment = await paymentLog.load(dispute.paymentId, 'store');
    const known = payment?.state.disputes?.find(({ id }) => id === dispute.disputeId);
    if (payment !== undefined && known?.status !== dispute.status) untold.push(dispute);
  }
  return untold;
};

const DAY_MS = 86_400_000;
const NOT_LOOKED =
  'captures, cancels and refunds made elsewhere could not all be looked for; the next look begins where this one did';

/** An account whose key may not list what was made there; `since` is RFC 3339. */
export type BarredLook = { reason: 'events'; since: string; account: string | undefined };

/** Of no refund: the authorization has ended here too. */
const isKnown = (state: PaymentState | undefined, refundId: string | undefined): boolean => {
  if (state === undefined) return true;
  if (refundId === undefined) return state.status !== 'AUTHORIZED';
  return state.observedRefunds.some((one) => one.refundId === refundId);
};

/** What was made elsewhere since the last look, whatever the payment's age. */
export const openElsewhereLook = (deps: CommandDeps) => {
  let barred: BarredLook[] = [];

  /** True where each is known now. Throws what the event store throws. */
  const askSince = async (sinceMs: number): Promise<boolean> => {
    const { outcome, made, reason, account } = await deps.provider.madeElsewhere(sinceMs);
    const { since = new Date(deps.nowMs()).toISOString() } = barred[0] ?? {};
    barred = reason === 'forbidden' ? [{ reason: 'events', since, account }] : [];
    let isWhole = outcome === 'FOUND';
    for (const { paymentId, refundId } of made) {
      const payment = await deps.paymentLog.load(paymentId, 'store');
      // Recovery asks first, and this look again once it has an outcome.
      const isOpen = unresolvedOperations(payment?.state).length > 0;
      if (!isOpen && isKnown(payment?.state, refundId)) continue;
      const found = isOpen ? undefined : await askAndLog(deps, paymentId);
      isWhole &&= found !== undefined && found !== 'unknown';
    }
    if (!isWhole) deps.logger.warn({ reason, account }, NOT_LOOKED);
    return isWhole;
  };

  return {
    /** None where the last look was let in. */
    barred: (): BarredLook[] => barred,
    /**
     * The time of this look, where all was told: the next one begins there. What is older than a day is
     * left to the comparison. Throws LedgerUnavailable, and what the event store throws.
     */
    look: async (lastMs = 0): Promise<number | undefined> => {
      const lookedMs = deps.nowMs();
      // A clock that was ahead hides nothing.
      const sinceMs = Math.max(lastMs <= lookedMs ? lastMs : 0, lookedMs - DAY_MS);
      const isWhole = await askSince(sinceMs);
      const disputes = await untoldDisputes(deps).catch(providerUnavailable);
      await askAboutUntold(deps, new Set(disputes.map(({ paymentId }) => paymentId)));
      return isWhole ? lookedMs : undefined;
    },
  };
};
