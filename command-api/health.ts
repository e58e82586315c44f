import type { EngineState } from '../shared/http/server/health.ts';
import type { Config } from '../shared/runtime/config.ts';
import type { CommandSide } from './compose.ts';

/** A provider that is ahead of the log makes nothing unready: payments can be read (gaps §17). */
export const providerState = (
  side: Pick<CommandSide, 'provider' | 'providerAhead' | 'unresolved'>,
  { stripe, provider: { names } }: Pick<Config, 'stripe' | 'provider'>,
): EngineState => {
  const ahead = side.providerAhead.now();
  const mode = stripe === undefined ? {} : { stripe: stripe.live ? 'live' : 'test' };
  if (ahead !== undefined)
    return {
      ...mode,
      state: 'ahead of the log',
      reason: readOnlyReason(ahead.operations),
      missingInLog: ahead.operations,
    };
  const { atOtherProvider } = side.unresolved.metrics();
  if (atOtherProvider > 0)
    return {
      ...mode,
      state: 'not the earlier one',
      reason: elsewhereReason(atOtherProvider, names[0]),
      unresolvedAtOther: atOtherProvider,
    };
  return { state: side.provider.breakerOpen() ? 'breaker open' : 'up', ...mode };
};

const elsewhereReason = (operations: number, name = ''): string =>
  `${operations} unresolved operations were sent to another provider than ${name}, and their outcome is not asked for; payments unresolved names it: start with it again, or payments resolve`;

const readOnlyReason = (operations: number): string =>
  `${operations === 0 ? "the end of the provider's ledger was not found, so it may hold" : `the provider holds at least ${operations}`} operations that the event log does not, as after a restore; merchants can only read until payments reconcile --acknowledge`;

const COMPARING =
  "the provider's ledger is still compared with the event log; merchants can only read until it is";

export const readOnlyWarnings = ({
  providerAhead,
}: Pick<CommandSide, 'providerAhead'>): string[] => {
  const ahead = providerAhead.now();
  if (ahead !== undefined) return [readOnlyReason(ahead.operations)];
  return providerAhead.isComparing() ? [COMPARING] : [];
};
