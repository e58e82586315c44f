import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { openSimulator } from '../../../provider-simulator/simulator.ts';
import { authorize } from '../../support/provider-operations.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { HANGS_MS } from '../../support/time-bounds.ts';
import { describeProvider } from './describe-provider.ts';
import { LEDGER_FILE } from './opened.ts';

describeProvider({
  name: 'simulator in process',
  token: 'tok_visa',
  open: (folder, timeoutMs) => openSimulator({ file: join(folder, LEDGER_FILE), timeoutMs }),
});

test('a refund made elsewhere is an entry once it is told of, and makes no log older', async () => {
  const folder = temporaryFolder();
  const provider = await openSimulator({
    file: join(folder.path, LEDGER_FILE),
    timeoutMs: HANGS_MS,
  });
  const sale = authorize('4000000000004293', { kind: 'SALE' });
  await provider.execute(sale, async () => undefined);
  const { paymentId, merchantId, amount, currency, operationId: authorizationId } = sale;
  const about = { paymentId, merchantId, amount, currency, authorizationId };
  for (let times = 0; times < 2; times += 1)
    await provider.laterResults({ ...about, refunds: [], observed: [] });
  const { entries } = await provider.ledger(null, 100);
  expect(entries.slice(1)).toMatchObject([
    { kind: 'REFUND', outcome: 'APPROVED', paymentId, amount: 100, currency },
  ]);
  expect(await provider.ledgerEnd(null)).toEqual(entries.slice(0, 1));
  await provider.close();
  folder.remove();
});
