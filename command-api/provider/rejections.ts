/**
 * What a provider rejects because of this installation or its account, and not because of a card: a
 * key, a permission, a rate, a setting. It can be reached, so the circuit breaker has no part in it;
 * each is counted, and logged for each account at most once a minute, for somebody has to act.
 */
import { createBoundedMap } from '../../shared/runtime/bounded-map.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { NotSentReason } from './port.ts';

/** A rejection that somebody has to act on. */
export type Rejection = Extract<
  NotSentReason,
  'unauthorized' | 'forbidden' | 'rate_limited' | 'misconfigured'
>;

const LINES: Record<Rejection, string> = {
  unauthorized: 'the provider rejects the key: nothing is charged until it has another one',
  forbidden: 'the provider rejects the operation: its key lacks the permission',
  rate_limited: 'the provider limits the rate of this account: operations are not carried out',
  misconfigured: 'the provider rejects the operation: the account is not set up for it',
};

/** Each reason that is counted. */
export const REJECTIONS = Object.keys(LINES) as readonly Rejection[];

const isRejection = (reason: string | undefined): reason is Rejection =>
  reason !== undefined && Object.hasOwn(LINES, reason);

export type RejectionOptions = {
  onRejection: (reason: Rejection) => void;
  logger: Pick<Logger, 'error'>;
  /** A clock that only goes forward, in milliseconds. */
  nowMs: () => number;
};

const LOGGED_EVERY_MS = 60_000;
const ACCOUNTS_MAX = 10_000;

/** Notes the reason of each outcome that has one. */
export const noteRejections = ({ onRejection, logger, nowMs }: RejectionOptions) => {
  const loggedAtMs = createBoundedMap<number>(ACCOUNTS_MAX);
  return (operation: string, reason: string | undefined, account?: string): void => {
    if (!isRejection(reason)) return;
    onRejection(reason);
    const about = `${reason} ${account ?? ''}`;
    const last = loggedAtMs.peek(about);
    if (last !== undefined && nowMs() - last < LOGGED_EVERY_MS) return;
    loggedAtMs.set(about, nowMs());
    logger.error({ operation, reason, ...(account !== undefined && { account }) }, LINES[reason]);
  };
};
