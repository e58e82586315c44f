/** One call of the port: all its requests to Stripe share an account and a deadline. */
import type { NotSent, Unknown } from '../port.ts';
import type { StripeResponse } from './client.ts';
import { errorOf, unknown } from './read.ts';
import type { StripeRequest } from './requests.ts';

export type StripeCall = {
  /** Sends a request once. Never throws. */
  send(request: StripeRequest): Promise<StripeResponse>;
  /** Of the deadline of the whole call. */
  leftMs(): number;
};

/**
 * What a response says of the account or of this service, and of no card: the key (401), a permission
 * or an address of ours (403), Stripe's rate limit (429).
 */
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

/** Nothing was carried out, for the reason that the response gives. */
export const notSent = (response: StripeResponse): NotSent => {
  // Never connected: the only thing that says that Stripe is away, and the only one for the breaker.
  if ('sent' in response && !response.sent) return { outcome: 'NOT_SENT', reason: 'unreachable' };
  const reason = rejectionOf(response);
  return { outcome: 'NOT_SENT', byProvider: true, ...(reason && { reason }) };
};
/** Stripe never carries it out, by what its objects say. */
export const NOT_SENT: NotSent = { outcome: 'NOT_SENT', byProvider: true };
/** The same because a fence came first. */
export const MET_FENCE: NotSent = { ...NOT_SENT, reason: 'fenced' };

/** No response, or one that decides nothing. */
export const undecided = (response: StripeResponse): Unknown =>
  unknown('sent' in response ? response.reason : (rejectionOf(response) ?? 'status'));
