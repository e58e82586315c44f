import type { EventStore } from '../../shared/event-store/port.ts';
import type { OpenText } from '../../shared/payment/state.ts';
import type { Config } from '../../shared/runtime/config.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import { newEventId } from '../../shared/runtime/ids.ts';
import type { NewThread } from '../../shared/runtime/jobs.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { Metrics } from '../../shared/runtime/metrics.ts';
import { SUBSCRIPTION_INTERRUPTED } from '../../shared/subscription/subscription.ts';
import { addressKinds } from '../endpoints/addresses.ts';
import { handleEndpointCommand } from '../endpoints/endpoint-log.ts';
import type { WebhookSecret } from '../signer.ts';
import type { DeliveryStore } from '../store/port.ts';
import { type Deliverer, type Leader, startDeliverer } from './deliverer.ts';
import { deliver } from './follow-endpoints.ts';
import { countAttempts, type SendDeps } from './send-item.ts';
import { deliverInThread } from './thread.ts';

/** Where that fails, the next failure of the endpoint tries again. */
export const disableIn =
  (store: Parameters<typeof handleEndpointCommand>[0], logger: Logger): SendDeps['disable'] =>
  async ({ endpointId, merchantId }, reason) => {
    const id = newEventId();
    const context = { actor: 'webhooks', requestId: id, correlationId: id, causationId: id };
    const command = { kind: 'disable', endpointId, reason } as const;
    try {
      const handled = await handleEndpointCommand(store, { merchantId, command, context });
      if (handled.kind === 'stored' && handled.events.length > 0)
        logger.error({ endpointId, merchant: merchantId, reason }, 'webhook endpoint disabled');
    } catch (error) {
      logger.warn({ endpointId, reason: reasonOf(error) }, 'webhook endpoint not disabled yet');
    }
  };

/** Here where a server keeps the log, else in a thread. An engine out of reach does not delay the start. */
export const openDeliverer = async (options: {
  config: Pick<Config, 'webhooks' | 'eventStoreDbUrl' | 'dataDir' | 'mongoUrl' | 'mode' | 'traces'>;
  store: EventStore;
  deliveries: DeliveryStore;
  secret: WebhookSecret;
  openText: OpenText;
  metrics: Metrics;
  logger: Logger;
  newThread: NewThread;
  leader: Leader;
}): Promise<Deliverer> => {
  const { config, store, deliveries, secret, metrics, logger, leader, newThread } = options;
  const { openText } = options;
  const { allowedNetworks } = config.webhooks;
  const onAttempt = countAttempts(metrics);
  const disable = disableIn(store, logger);
  const parts = { store, deliveries, disable, logger, onAttempt, openText };
  const isHere = config.eventStoreDbUrl !== undefined;
  // In a process with a thread, the thread alone loads the client.
  const client = isHere ? await import('./send.ts') : undefined;
  const deliverer = startDeliverer({
    store,
    secret,
    leader,
    begin: async (key) => {
      if (client === undefined)
        return deliverInThread({ ...parts, config, allowedNetworks, newThread }, key);
      const sender = client.createWebhookSender({ kindOf: addressKinds(allowedNetworks) });
      return deliver({ ...parts, secret: key, sender });
    },
    interrupted: (fields) => {
      if (isHere) logger.warn(fields, SUBSCRIPTION_INTERRUPTED);
      else logger.error(fields, 'webhook deliveries interrupted: their thread starts again');
    },
  });
  // Metrics name no endpoint and no merchant.
  metrics.beforeScrape(() => {
    const { endpoints, oldestWaitingMs } = deliverer.status();
    for (const [status, count] of Object.entries(endpoints))
      metrics.webhookEndpoints.set({ status }, count);
    const waitsMs = oldestWaitingMs === null ? 0 : Date.now() - oldestWaitingMs;
    metrics.webhookOldestSeconds.set(Math.max(0, waitsMs) / 1000);
  });
  return deliverer;
};
