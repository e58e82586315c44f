import { httpProvider } from '../providers/http/provider.ts';
import type { Provider } from '../providers/port.ts';
import { stripeProvider } from '../providers/stripe/provider.ts';
import type { Config } from '../shared/runtime/config.ts';
import type { Logger } from '../shared/runtime/log.ts';

const accountsOf = (merchants: NonNullable<Config['stripe']>['merchants']) =>
  new Map(
    [...merchants].map(([merchantId, { secretKey, account }]) => [
      merchantId,
      { secretKey, account, name: account ?? `the key of ${merchantId}` },
    ]),
  );

/** Throws where the settings name the simulator, which has no address. */
export const openOuterProvider = ({ provider, stripe }: Config, logger?: Logger): Provider => {
  const { url, token, connectTimeoutMs, timeoutMs } = provider;
  if (stripe !== undefined) {
    const { secretKey, account, merchants, ...rest } = stripe;
    return stripeProvider({
      ...rest,
      accounts: { installation: { secretKey, account }, merchants: accountsOf(merchants) },
      connectTimeoutMs,
      timeoutMs,
      logger,
    });
  }
  if (url === undefined) throw new Error('the settings name no provider with an address');
  return httpProvider({ url, token, connectTimeoutMs, timeoutMs });
};
