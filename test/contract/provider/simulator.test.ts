import { join } from 'node:path';
import { openSimulator } from '../../../provider-simulator/simulator.ts';
import { describeProvider } from './describe-provider.ts';
import { LEDGER_FILE } from './opened.ts';

describeProvider({
  name: 'simulator in process',
  token: 'tok_visa',
  open: (folder, timeoutMs) => openSimulator({ file: join(folder, LEDGER_FILE), timeoutMs }),
});
