/** One call of the port: its requests to Stripe share an account and a deadline. */
import type { NotSent, Unknown } from '../port.ts';
import type { StripeResponse } from './client.ts';
import { errorOf, unknown } from './read.ts';
import type { StripeRequest } from './requests.ts';

export type StripeCall = {
  send(request: StripeRequest): Promise<StripeResponse>;
  leftMs(): number;
};

/** The key (401), a permission or our address (403), the rate limit (429): no fault of a card. */
const rejectionOf = (
  response: StripeResponse,
): 'unauthorized' | 'forbidden' | 'rate_limited' | undefined => {
  if ('sent' in response) return undefined;
  const { status } = response;
  if (status === 401) return 'unauthorized';
  if (status === 403) return 'forbidden';
  // A lock that was not free (lock_timeout) has the same status.
  return status === 429 && errorOf(response)?.code === 'rate_limit' ? 'rate_limited' : undefined;
};

export const notSent = (response: StripeResponse): NotSent => {
  // Never connected: only this counts for the breaker.
  if ('sent' in response && !response.sent) return { outcome: 'NOT_SENT', reason: 'unreachable' };
  const reason = rejectionOf(response);
  return { outcome: 'NOT_SENT', byProvider: true, ...(reason && { reason }) };
};
/** Stripe never carries it out, by what its objects say. */
export const NOT_SENT: NotSent = { outcome: 'NOT_SENT', byProvider: true };
export const MET_FENCE: NotSent = { ...NOT_SENT, reason: 'fenced' };

export const undecided = (response: StripeResponse): Unknown =>
  unknown('sent' in response ? response.reason : (rejectionOf(response) ?? 'status'));
