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
import { type CommandResponse, unresolvedIn } from '../support/service.ts';
import { type ServiceHere, startServiceHere } from '../support/service-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const PAYMENTS = '/api/v1/payments';
const OPERATIONS = ['auth', 'sale', 'capture', 'void', 'refund'] as const;
type Operation = (typeof OPERATIONS)[number];

const BUDGET_MS = 2000;
const SETTINGS = {
  LOG_LEVEL: 'silent',
  PROVIDER_TIMEOUT_MS: '400',
  REQUEST_BUDGET_MS: String(BUDGET_MS),
  RECOVERY_DELAYS_MS: '50,100,200,400,800,800,800,800',
};
/** What a busy machine may add to a budget; a request without one hangs as long as the provider. */
const SLACK_MS = 10_000;
const AT_ONCE = 8;
const RESOLVED_MS_MAX = 60_000;
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

const create = (service: ServiceHere, { operation, amount }: Round): Promise<CommandResponse> =>
  service.post(PAYMENTS, {
    ...payment,
    amount,
    captureNow: operation === 'sale' || operation === 'refund',
  });

/** Sends the operation under its fault; gives its answer and how long it took. */
const meet = async (
  service: ServiceHere,
  provider: FaultyProvider,
  round: Round,
): Promise<[response: CommandResponse, tookMs: number]> => {
  const { operation, fault, amount } = round;
  if (operation === 'auth' || operation === 'sale') {
    provider.plan(`${KINDS[operation]} ${amount}`, fault);
    return timed(() => create(service, round));
  }
  const [made, tookMs] = await timed(() => create(service, round));
  // A machine this busy has found a fault of its own.
  if (made.status !== 200) return [made, tookMs];
  const { paymentId } = made.json;
  provider.plan(`${KINDS[operation]} ${paymentId}`, fault);
  return timed(() => service.post(`${PAYMENTS}/${paymentId}/${operation}`));
};

const timed = async (send: () => Promise<CommandResponse>): Promise<[CommandResponse, number]> => {
  const began = performance.now();
  const response = await send();
  return [response, performance.now() - began];
};

const expectInContract = (round: Round, { status }: CommandResponse, tookMs: number): void => {
  const seen = { ...round, status, tookMs: Math.round(tookMs) };
  if (![200, 402, 422, 503].includes(status)) throw new Error(`not ours: ${JSON.stringify(seen)}`);
  if (tookMs > BUDGET_MS + SLACK_MS) throw new Error(`past its budget: ${JSON.stringify(seen)}`);
};

const meetAll = async (
  service: ServiceHere,
  provider: FaultyProvider,
  rounds: readonly Round[],
) => {
  const left = rounds.values();
  const worker = async (): Promise<void> => {
    for (const round of left) {
      const [response, tookMs] = await meet(service, provider, round);
      expectInContract(round, response, tookMs);
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
    await using service = await startServiceHere({ dataDir, env });
    await meetAll(service, provider, rounds);
    await until(
      'all is resolved',
      async () => (await unresolvedIn(service)) === 0,
      RESOLVED_MS_MAX,
    );
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
}, 300_000);
