/** What becomes of a simulated payment later, by the card of its authorization (gaps §15). Pure. */
import type { PaymentQuestion } from '../command-api/provider/port.ts';
import type { LaterResult } from '../shared/payment/outcome.ts';
import { type Authorization, elsewhereOf } from './rules.ts';
import { type CardBehaviour, LATER_BEHAVIOURS } from './test-cards.ts';

/** True for a card whose payments change later. */
export const isLaterBehaviour = (behaviour: CardBehaviour | null | undefined): boolean =>
  behaviour !== null && behaviour !== undefined && LATER_BEHAVIOURS.has(behaviour);

/** `isSeen`: the dispute has been told of once, so that it is over by now where the card says so. */
export const laterResultsOf = (
  { authorizationId, refunds }: PaymentQuestion,
  authorization: Authorization,
  isSeen: boolean,
): LaterResult[] => {
  const { kind, amount, behaviour, captured, voided, outcome } = authorization;
  if (outcome !== 'APPROVED') return [];
  const taken = kind === 'SALE' ? amount : (captured ?? 0);
  const id = authorizationId.slice(-26);
  const dispute = (status: 'OPEN' | 'WON' | 'LOST'): LaterResult[] =>
    taken === 0
      ? []
      : [{ kind: 'DISPUTE', disputeId: `dp_${id}`, amount: taken, reason: 'fraudulent', status }];
  switch (behaviour) {
    case 'AUTHORIZATION_EXPIRES':
      return taken === 0 && voided === null ? [{ kind: 'AUTHORIZATION_EXPIRED' }] : [];
    case 'REFUND_FAILS':
      return refunds.map(({ operationId }) => ({
        kind: 'REFUND_FAILED',
        operationId,
        failureCode: 'PROCESSING_ERROR',
        providerFailureCode: 'refund_bounced',
      }));
    case 'REFUNDED_ELSEWHERE':
      return taken === 0
        ? []
        : [{ kind: 'REFUND_OBSERVED', refundId: `re_${id}`, amount: elsewhereOf(taken) }];
    case 'DISPUTED':
      return dispute('OPEN');
    case 'DISPUTE_WON':
      return dispute(isSeen ? 'WON' : 'OPEN');
    case 'DISPUTE_LOST':
      return dispute(isSeen ? 'LOST' : 'OPEN');
    default:
      return [];
  }
};
