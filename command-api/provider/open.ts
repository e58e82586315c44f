/** The provider that the settings name: one over HTTP, or the simulator in this process. */
import type { Config } from '../../shared/config.ts';
import type { Log } from '../../shared/log.ts';
import { httpProvider } from './http.ts';
import type { Provider } from './port.ts';
import { openSimulator } from './simulator.ts';

/** `ledgerFile` is the simulator's, and asked for only where no provider is set. */
export const openProvider = async (
  config: Config,
  log: Log,
  ledgerFile: () => string,
): Promise<Provider> => {
  const { url, token, connectTimeoutMs, timeoutMs } = config.provider;
  return url === undefined
    ? openSimulator({ file: ledgerFile(), timeoutMs, logger: log })
    : httpProvider({ url, token, connectTimeoutMs, timeoutMs });
};
