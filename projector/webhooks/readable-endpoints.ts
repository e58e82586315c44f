/** A merchant's endpoints, for the deliverer: one stream that cannot be read stops no other merchant's messages (ADR-0179). */
import { UnreadableStream } from '../../shared/event-store/errors.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import { type MerchantEndpoints, readEndpoints } from '../../shared/webhooks/endpoint-log.ts';
import { endpointStreamOf } from '../../shared/webhooks/endpoints.ts';
import type { Log } from '../subscription.ts';

/**
 * Undefined, and an error line, where their events cannot be read: nothing may be sent by what was known
 * of them before. Throws StoreUnavailable.
 */
export const readableEndpoints = async (
  store: Pick<EventStore, 'readStream'>,
  merchantId: string,
  logger: Log,
): Promise<MerchantEndpoints | undefined> => {
  try {
    return await readEndpoints(store, merchantId);
  } catch (error) {
    if (!(error instanceof UnreadableStream)) throw error;
    logger.error(
      { stream: endpointStreamOf(merchantId), reason: reasonOf(error) },
      'webhook endpoints of a merchant halted: their events cannot be read; put the right log back',
    );
    return undefined;
  }
};
