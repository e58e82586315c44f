/** Spans around the provider calls that move money, or ask what became of it. */
import { withSpan } from '../../shared/runtime/tracing.ts';
import type { Provider } from './port.ts';

/** The provider, with a span for each call; `address` is its host, undefined where it has none. */
export const tracedProvider = (provider: Provider, address: string | undefined): Provider => {
  const traced = <T extends { outcome: string }>(
    operation: string,
    work: () => Promise<T>,
  ): Promise<T> =>
    withSpan(
      {
        name: `provider ${operation}`,
        kind: 'client',
        attributes: { 'server.address': address },
      },
      work,
      ({ outcome }) => ({
        'payments.outcome': outcome,
        'error.type': outcome === 'UNKNOWN' ? outcome : undefined,
      }),
    );
  return {
    ...provider,
    execute: (operation, opened) =>
      traced(operation.kind.toLowerCase(), () => provider.execute(operation, opened)),
    describeToken: (...request) => traced('describe', () => provider.describeToken(...request)),
    lookUp: (question) => traced('look up', () => provider.lookUp(question)),
    fence: (question) => traced('fence', () => provider.fence(question)),
    laterResults: (question) => traced('later results', () => provider.laterResults(question)),
  };
};
