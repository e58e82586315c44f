/** Spans around the calls of the read models that a request waits for. */
import { withSpan } from '../runtime/tracing.ts';
import type { ReadModels } from './port.ts';

export const tracedReadModels = (readModels: ReadModels, system: string): ReadModels => {
  const spanOf = (name: string, operation: string) => ({
    name,
    kind: 'client' as const,
    attributes: { 'db.system.name': system, 'db.operation.name': operation },
  });
  return {
    ...readModels,
    get: (paymentId, merchantId) =>
      withSpan(spanOf('read payment', 'get'), () => readModels.get(paymentId, merchantId)),
    search: (search, limit) =>
      withSpan(spanOf('search payments', 'search'), () => readModels.search(search, limit)),
  };
};
