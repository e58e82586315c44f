import { type ParsedSettings, providerNameAt } from './table.ts';

/** `provider`: the simulated one alone. The last three: docs/several-processes.md. */
export type Mode = 'embedded' | 'provider' | 'command-api' | 'query-api' | 'projector';

export const isDistributed = (mode: Mode): boolean => mode !== 'embedded' && mode !== 'provider';

export const PORTS: Record<Mode, number> = {
  embedded: 8080,
  'command-api': 8081,
  'query-api': 8082,
  projector: 8083,
  provider: 8090,
};

/** On for several processes, off for one on its own (gaps §11). */
export const ratesOf = (mode: Mode) =>
  isDistributed(mode)
    ? { merchant: 1_000, unauthenticated: 50 }
    : { merchant: 0, unauthenticated: 0 };

/** A process on its own has no gateway that could send requests to another one. */
export const drainMsOf = (mode: Mode): number => (isDistributed(mode) ? 3_000 : 0);

export const providerKindOf = ({ PROVIDER, PROVIDER_URL }: ParsedSettings) =>
  PROVIDER ?? (PROVIDER_URL === undefined ? 'simulator' : 'http');

/** The first for new events; the others mean the same provider (`PROVIDER_SAME_AS`, ADR-0247). */
export const providerNamesOf = (parsed: ParsedSettings): [name: string, ...sameAs: string[]] => {
  const { PROVIDER_URL: address, PROVIDER_SAME_AS: sameAs = [] } = parsed;
  return [address === undefined ? providerKindOf(parsed) : providerNameAt(address), ...sameAs];
};

/** Milliseconds. A connection never takes longer than a call. */
export const timesOf = (parsed: ParsedSettings) => {
  // A call to Stripe is two round trips, the second one to the issuer.
  const isStripe = providerKindOf(parsed) === 'stripe';
  const timeoutMs = parsed.PROVIDER_TIMEOUT_MS ?? (isStripe ? 25_000 : 5_000);
  return {
    timeoutMs,
    connectTimeoutMs: Math.min(parsed.PROVIDER_CONNECT_TIMEOUT_MS, timeoutMs),
    requestBudgetMs: parsed.REQUEST_BUDGET_MS ?? (isStripe ? 30_000 : 10_000),
  };
};

export const isLiveKey = (key: string): boolean => /^(sk|rk)_live_/.test(key);
