/** How the cases of the provider port open a provider, and the outcomes that they expect. */
import { afterEach, beforeEach, expect } from '@jest/globals';
import type { LedgerEntry, Provider } from '../../providers/port.ts';
import type { Driver } from '../support/describe-driver.ts';
import { type LoggedProvider, type References, withLog } from '../support/logged-provider.ts';
import { authorize, followUp } from '../support/provider-operations.ts';
import { folderOfEachTest } from '../support/temporary-folder.ts';
import { HANGS_MS } from '../support/time-bounds.ts';

export type ProviderDriver = Driver & {
  /** A token of a Visa card that is approved; absent where the driver has no tokens. */
  token?: string;
  /** Opens a provider over the ledger of a folder, as the next start of it would. */
  open(folder: string, timeoutMs: number): Promise<Provider>;
  /** False: what only the simulator's cards, rules and files show is not asked of it. */
  simulated?: false;
};

/** Registers a test of what the simulator alone shows, for the drivers that reach it. */
export const onlySimulated = ({ simulated }: ProviderDriver, register: () => void): void => {
  if (simulated !== false) register();
};

export const LEDGER_FILE = 'ledger.sqlite';
/** For the cases that wait for the time-out; half of the 2 s that card 4269 is at work. */
export const SHORT_TIMEOUT_MS = 1_000;

export const approved = { outcome: 'APPROVED', providerReference: expect.any(String) };
export const declined = (failureCode: string) => ({
  outcome: 'DECLINED',
  failureCode,
  providerFailureCode: expect.stringMatching(/^[A-Za-z0-9_.-]{1,64}$/),
});
export const unknown = { outcome: 'UNKNOWN', reason: expect.any(String) };

export const takeAll = async (
  provider: Pick<Provider, 'ledger'>,
  limit: number,
): Promise<LedgerEntry[]> => {
  const all: LedgerEntry[] = [];
  let after: string | null | undefined;
  while (after !== null) {
    const page = await provider.ledger(after ?? null, limit);
    expect(page.entries.length).toBeLessThanOrEqual(limit);
    all.push(...page.entries);
    after = page.next;
  }
  return all;
};

/** What the provider says of an operation that it did not carry out. */
export const notSent = { outcome: 'NOT_SENT', byProvider: true };

/** Opens a provider over an empty ledger before each test of the group and hands it to `use`. */
export const openBeforeEach = (driver: ProviderDriver, use: (opened: LoggedProvider) => void) => {
  const folder = folderOfEachTest();
  let provider: LoggedProvider;
  let references: References;
  beforeEach(async () => {
    references = new Map();
    provider = withLog(await driver.open(folder.path, HANGS_MS), references);
    use(provider);
  });
  afterEach(() => provider.close());
  const authorized = async (number?: string, parts?: Parameters<typeof authorize>[1]) => {
    const operation = authorize(number, parts);
    expect(await provider.execute(operation)).toMatchObject(approved);
    return operation;
  };
  return {
    /** Closes the provider and opens it again over the same ledger. */
    reopen: async (timeoutMs = HANGS_MS, whileClosed?: () => void): Promise<LoggedProvider> => {
      await provider.close();
      whileClosed?.();
      provider = withLog(await driver.open(folder.path, timeoutMs), references);
      return provider;
    },
    folder: (): string => folder.path,
    authorized,
    captured: async (amount: number, number?: string) => {
      const operation = await authorized(number);
      expect(await provider.execute(followUp('CAPTURE', operation, { amount }))).toMatchObject(
        approved,
      );
      return operation;
    },
  };
};
