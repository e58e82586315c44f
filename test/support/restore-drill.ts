/** A backup, a charge after it and a restore of the copy, by the commands of docs/operations.md. */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import sale from '../../examples/sale.json' with { type: 'json' };
import { SECRET, token } from './in-process.ts';
import { commandsOf, runCommandOf, runInShell } from './operations-page.ts';
import { type CommandResponse, type ServiceProcess, startService } from './service.ts';
import { startServiceHere } from './service-here.ts';
import { until } from './until.ts';

const PAYMENTS = '/api/v1/payments';
export const SETTINGS = { JWT_SECRET: SECRET, LOG_LEVEL: 'warn' };

/** Ends a service in good order. */
export const stopped = async (service: ServiceProcess): Promise<void> => {
  service.kill('SIGTERM');
  expect(await service.exited).toMatchObject({ code: 0 });
};

const outcomeOf = ({ status, json }: CommandResponse) => ({
  status,
  paymentId: json.paymentId,
  state: json.status,
  transactions: json.transactions.map(({ id, type, amount }) => ({ id, type, amount })),
});

/** The drill over one folder; `ledgerDir` holds the ledger, which the service's own is where left out. */
export const drill = async (folder: string, settings: NodeJS.ProcessEnv, ledgerDir?: string) => {
  const headers = {
    authorization: `Bearer ${await token('m_demo')}`,
    'idempotency-key': 'order-1',
  };
  const dataDir = join(folder, 'data');
  await using service = await startServiceHere({ dataDir, env: settings });
  const own = { ...settings, DATA_DIR: dataDir, PORT: String(service.port) };
  expect(
    (await service.post(PAYMENTS, sale, { ...headers, 'idempotency-key': 'before' })).status,
  ).toBe(200);
  expect(await runCommandOf('backup', folder, own)).toMatchObject({ code: 0 });
  const first = await service.post(PAYMENTS, sale, headers);
  expect(first.status).toBe(200);
  await service[Symbol.asyncDispose]();

  const restored = join(folder, 'restored');
  const [copy = ''] = commandsOf('restore', folder).split('\n');
  expect(await runInShell(copy, {})).toMatchObject({ code: 0 });
  const ledger = 'provider-ledger.sqlite';
  if (ledgerDir === undefined) copyFileSync(join(dataDir, ledger), join(restored, ledger));
  await using again = await startService({ dataDir: restored, env: settings });
  const there = { ...settings, DATA_DIR: restored, PORT: String(again.port) };
  expect((await again.post(PAYMENTS, sale, headers)).json).toMatchObject({
    error: 'SERVICE_UNAVAILABLE',
    details: [expect.anything(), expect.stringContaining('payments reconcile --acknowledge')],
  });
  expect((await again.get(PAYMENTS, headers)).status).toBe(200);
  const lines = () => again.stdout().match(/"level":"error"[^\n]*older copy/g) ?? [];
  // The log is written beside the requests, a moment later.
  await until('the error line is written', () => lines().length > 0);
  expect(lines()).toHaveLength(1);
  // On a busy machine, or over HTTP, the comparison may end after the banner.
  expect(again.stderr()).toMatch(/only read until (payments reconcile --acknowledge|it is)/);

  const opened = await runCommandOf('open', folder, there);
  expect(opened).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/MISSING_IN_LOG .*\nacknowledged up to entry 2 of the ledger/s),
  });
  expect(outcomeOf(await again.post(PAYMENTS, sale, headers))).toEqual(outcomeOf(first));
  await stopped(again);
  return { restored, first };
};
