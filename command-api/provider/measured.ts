/** Measures each provider call by operation and outcome. */
import type { Metrics } from '../../shared/runtime/metrics.ts';
import type { Provider } from './port.ts';

/** The same provider, with its times in `payments_provider_request_duration_seconds`. */
export const measured = (
  provider: Provider,
  { providerSeconds }: Pick<Metrics, 'providerSeconds'>,
): Provider => {
  const timed = async <T extends { outcome: string }>(
    name: string,
    call: Promise<T>,
  ): Promise<T> => {
    const startedAt = performance.now();
    const response = await call;
    providerSeconds.observe((performance.now() - startedAt) / 1000, name, response.outcome);
    return response;
  };
  return {
    execute: (operation) => timed(operation.kind, provider.execute(operation)),
    lookUp: (question) => timed('LOOK_UP', provider.lookUp(question)),
    fence: (question) => timed('FENCE', provider.fence(question)),
    ledger: (after, limit) => provider.ledger(after, limit),
    close: () => provider.close(),
  };
};
