/**
 * Rejections because of this installation or its account, not of a card. An operator has to act, so
 * each is counted, and logged for each account at most once a minute.
 */
import { createBoundedMap } from '../../shared/runtime/bounded-map.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { NotSentReason } from './port.ts';

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

export const REJECTIONS = Object.keys(LINES) as readonly Rejection[];

const isRejection = (reason: string | undefined): reason is Rejection =>
  reason !== undefined && Object.hasOwn(LINES, reason);

export type RejectionOptions = {
  onRejection: (reason: Rejection) => void;
  logger: Pick<Logger, 'error'>;
  nowMs: () => number;
};

const LOGGED_EVERY_MS = 60_000;
const ACCOUNTS_MAX = 10_000;

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
