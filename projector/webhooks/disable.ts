/** Ends an endpoint that is gone, or that accepted nothing for days: an event of its merchant. */
import { reasonOf } from '../../shared/runtime/error-text.ts';
import { newEventId } from '../../shared/runtime/ids.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { handleEndpointCommand } from '../../shared/webhooks/endpoint-log.ts';
import type { SendDeps } from './send-item.ts';

/** Appends to the store that an endpoint is disabled. Where that fails, its next failure does it. */
export const disableIn =
  (store: Parameters<typeof handleEndpointCommand>[0], logger: Logger): SendDeps['disable'] =>
  async ({ endpointId, merchantId }, reason) => {
    const id = newEventId();
    const context = { actor: 'webhooks', requestId: id, correlationId: id, causationId: id };
    const command = { kind: 'disable', endpointId, reason } as const;
    try {
      const handled = await handleEndpointCommand(store, merchantId, command, context);
      if (handled.kind === 'stored' && handled.events.length > 0)
        logger.error({ endpointId, merchant: merchantId, reason }, 'webhook endpoint disabled');
    } catch (error) {
      logger.warn({ endpointId, reason: reasonOf(error) }, 'webhook endpoint not disabled yet');
    }
  };
