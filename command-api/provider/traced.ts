import { withSpan } from '../../shared/runtime/tracing.ts';
import type { Provider } from './port.ts';

/** A span for each call that moves money or asks about it; `address` is the provider's host. */
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
