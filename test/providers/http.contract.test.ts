import { join } from 'node:path';
import { httpProvider } from '../../providers/http/provider.ts';
import type { Provider } from '../../providers/port.ts';
import { providerHere } from '../support/provider-here.ts';
import { HANGS_MS } from '../support/time-bounds.ts';
import { describeProvider } from './describe-provider.ts';
import { LEDGER_FILE } from './opened.ts';

const TOKEN = 'the-token-of-the-test';

const openOverHttp = async (folder: string, timeoutMs: number): Promise<Provider> => {
  const simulator = await providerHere(join(folder, LEDGER_FILE), TOKEN);
  const { url } = simulator;
  const client = httpProvider({ url, token: TOKEN, connectTimeoutMs: HANGS_MS, timeoutMs });
  return {
    ...client,
    close: async () => {
      await client.close();
      await simulator[Symbol.asyncDispose]();
    },
  };
};

describeProvider({ name: 'simulator over HTTP', token: 'tok_visa', open: openOverHttp });
