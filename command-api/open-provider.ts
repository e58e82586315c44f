/** The provider that the settings name, where it is another one than the simulator. */
import type { Config } from '../shared/runtime/config.ts';
import { httpProvider } from './provider/http/provider.ts';
import type { Provider } from './provider/port.ts';
import { stripeProvider } from './provider/stripe/provider.ts';

/** Throws where the settings name the simulator, which has no address. */
export const openOuterProvider = ({ provider, stripe }: Config): Provider => {
  const { url, token, connectTimeoutMs, timeoutMs } = provider;
  if (stripe !== undefined) {
    const { secretKey, account, ...rest } = stripe;
    return stripeProvider({
      ...rest,
      account: { secretKey, account },
      connectTimeoutMs,
      timeoutMs,
    });
  }
  if (url === undefined) throw new Error('the settings name no provider with an address');
  return httpProvider({ url, token, connectTimeoutMs, timeoutMs });
};
