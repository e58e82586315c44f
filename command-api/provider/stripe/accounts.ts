/**
 * In whose account of Stripe a payment is made: the merchant's own where it has one, else that of the
 * installation. It is a setting and stands in no event, so whatever is asked of a payment is asked in
 * the account that its merchant has now.
 */
import type { NoticeOrigin } from '../port.ts';
import type { StripeAccount } from './client.ts';

export type StripeAccounts = {
  /** Of every merchant that has none of its own. */
  installation: StripeAccount;
  /** By merchant id. */
  merchants?: ReadonlyMap<string, StripeAccount>;
};

/** The account that a merchant's payments are made in. */
export const accountOf = (
  { installation, merchants }: StripeAccounts,
  merchantId: string,
): StripeAccount => merchants?.get(merchantId) ?? installation;

/** The account that a notice is about; undefined where it is none of this installation's. */
export const accountOfNotice = (
  accounts: StripeAccounts,
  { merchantId, account }: NoticeOrigin,
): StripeAccount | undefined => {
  if (merchantId !== undefined) return accountOf(accounts, merchantId);
  if (account === undefined) return accounts.installation;
  return allAccounts(accounts).find((one) => one.account === account);
};

/** Each account once, that of the installation first. */
export const allAccounts = ({ installation, merchants }: StripeAccounts): StripeAccount[] => {
  const all = [installation, ...(merchants?.values() ?? [])];
  const nameOf = ({ secretKey, account }: StripeAccount) => `${secretKey} ${account ?? ''}`;
  return [...new Map(all.map((one) => [nameOf(one), one])).values()];
};
