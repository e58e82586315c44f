/**
 * Every fault of a provider on every operation: whatever it does, each request ends in its budget
 * with a status of the contract, and once all is resolved ledger and log agree.
 */
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import {
  FAULTS,
  type FaultyProvider,
  faultyProvider,
  type ProviderFault,
} from '../support/faulty-provider.ts';
import { expectLedgerMatchesLog } from '../support/ledger-and-log.ts';
import { timesOf } from '../support/long-run-share.ts';
import { type Random, randomOf } from '../support/random.ts';
import { type CommandResponse, unresolvedIn } from '../support/service-client.ts';
import { type StartedInProcess, startInProcess } from '../support/service-in-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { ENDS_MS_MAX } from '../support/time-bounds.ts';
import { until, within } from '../support/until.ts';

const PAYMENTS = '/api/v1/payments';
const OPERATIONS = ['auth', 'sale', 'capture', 'void', 'refund'] as const;
type Operation = (typeof OPERATIONS)[number];

const SETTINGS = {
  LOG_LEVEL: 'silent',
  PROVIDER_TIMEOUT_MS: '400',
  REQUEST_BUDGET_MS: '2000',
  RECOVERY_DELAYS_MS: '50,100,200,400,800,800,800,800',
};
const AT_ONCE = 8;
const KINDS = {
  auth: 'AUTHORIZE',
  sale: 'SALE',
  capture: 'CAPTURE',
  void: 'VOID',
  refund: 'REFUND',
};

type Round = { operation: Operation; fault: ProviderFault; amount: number };

const CELLS = FAULTS.flatMap((fault) => OPERATIONS.map((operation) => ({ fault, operation })));

/** Every round has an amount of its own, which is how its create is recognised at the provider. */
const roundsOf = (times: number, share: number, random: Random): Round[] =>
  Array.from({ length: times }, () => CELLS)
    .flat()
    .filter(() => random.chance(share))
    .map((cell, at) => ({ ...cell, amount: 1000 + at }));

const create = (
  service: StartedInProcess,
  { operation, amount }: Round,
): Promise<CommandResponse> =>
  service.post(PAYMENTS, {
    ...payment,
    amount,
    captureNow: operation === 'sale' || operation === 'refund',
  });

/** Sends the operation under its fault. */
const meet = async (
  service: StartedInProcess,
  provider: FaultyProvider,
  round: Round,
): Promise<CommandResponse> => {
  const { operation, fault, amount } = round;
  if (operation === 'auth' || operation === 'sale') {
    provider.plan(`${KINDS[operation]} ${amount}`, fault);
    return create(service, round);
  }
  const made = await create(service, round);
  // A machine this busy has found a fault of its own.
  if (made.status !== 200) return made;
  const { paymentId } = made.json;
  provider.plan(`${KINDS[operation]} ${paymentId}`, fault);
  return service.post(`${PAYMENTS}/${paymentId}/${operation}`);
};

const expectInContract = (round: Round, { status }: CommandResponse): void => {
  const seen = { ...round, status };
  if (![200, 402, 422, 503].includes(status)) throw new Error(`not ours: ${JSON.stringify(seen)}`);
};

const meetAll = async (
  service: StartedInProcess,
  provider: FaultyProvider,
  rounds: readonly Round[],
) => {
  const left = rounds.values();
  const worker = async (): Promise<void> => {
    for (const round of left) {
      expectInContract(round, await within(2 * ENDS_MS_MAX, () => meet(service, provider, round)));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
};

/** Meets every fault with every operation `times`, or a share of these; gives how many it met. */
const surviveProviderFaults = async (times: number, share = 1): Promise<number> => {
  const random = randomOf();
  const rounds = roundsOf(times, share, random);
  using folder = temporaryFolder();
  const dataDir = folder.path;
  const provider = await faultyProvider(join(dataDir, 'provider-ledger.sqlite'));
  try {
    const env = { ...SETTINGS, PROVIDER_URL: provider.url };
    await using service = await startInProcess({ dataDir, env });
    await meetAll(service, provider, rounds);
    await until('all is resolved', async () => (await unresolvedIn(service)) === 0);
  } finally {
    await provider.close();
  }
  await expectLedgerMatchesLog(dataDir);
  process.stderr.write(`provider faults: ${rounds.length} runs, 0 differences to the ledger\n`);
  return rounds.length;
};

test('M4-M6: under every provider fault on every operation, or a share of them, ledger and log agree', async () => {
  const met = await surviveProviderFaults(timesOf(4, 1), timesOf(1, 0.1));
  expect(met).toBeGreaterThan(timesOf(300, 0));
});
