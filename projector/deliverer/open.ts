import type { EventStore } from '../../shared/event-store/port.ts';
import type { Config } from '../../shared/runtime/config.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import { newEventId } from '../../shared/runtime/ids.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { Metrics } from '../../shared/runtime/metrics.ts';
import { addressKinds } from '../../shared/webhooks/addresses.ts';
import type { DeliveryStore } from '../../shared/webhooks/delivery-store/port.ts';
import { handleEndpointCommand } from '../../shared/webhooks/endpoint-log.ts';
import type { WebhookSecret } from '../../shared/webhooks/signer.ts';
import type { Projector } from '../compose.ts';
import { type Deliverer, startDeliverer, type Turn } from './deliverer.ts';
import { deliver } from './endpoints.ts';
import type { SendDeps } from './send-item.ts';
import { countAttempt } from './status.ts';
import { deliverInThread } from './thread.ts';

type OpenDeliverer = {
  config: Pick<Config, 'webhooks' | 'eventStoreDbUrl' | 'dataDir' | 'mongoUrl' | 'mode' | 'traces'>;
  store: EventStore;
  deliveries: DeliveryStore;
  secret: WebhookSecret;
  metrics: Metrics;
  logger: Logger;
  projector: Pick<Projector, 'status' | 'handedOver'>;
};

/** Where that fails, the next failure of the endpoint tries again. */
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

/** Here where a server keeps the log, else in a thread. An engine out of reach does not delay the start. */
export const openDeliverer = async (options: OpenDeliverer): Promise<Deliverer> => {
  const { config, store, deliveries, secret, metrics, logger, projector } = options;
  const { allowedNetworks } = config.webhooks;
  const turn = (): Turn => {
    const { state } = projector.status();
    if (state === 'standing-by') return 'of another';
    return state === 'starting' || state === 'stopped' ? 'unknown' : 'own';
  };
  const disable = disableIn(store, logger);
  const onAttempt = countAttempt(metrics);
  const parts = { store, deliveries, disable, logger, onAttempt };
  const { handedOver } = projector;
  const own = { store, secret, turn, handedOver };
  if (config.eventStoreDbUrl === undefined) {
    const { dataDir, mongoUrl, mode, traces } = config;
    const ofThread = { ...parts, allowedNetworks, config: { dataDir, mongoUrl, mode, traces } };
    return startDeliverer({
      ...own,
      begin: (key) => deliverInThread(ofThread, key),
      interrupted: (fields) =>
        logger.error(fields, 'webhook deliveries interrupted: their thread starts again'),
    });
  }
  // Only here: in a process with a thread, the thread alone loads the client.
  const { createSender } = await import('./send.ts');
  const kindOf = addressKinds(allowedNetworks);
  return startDeliverer({
    ...own,
    begin: async (key) => deliver({ ...parts, secret: key, sender: createSender({ kindOf }) }),
    interrupted: (fields) =>
      logger.warn(fields, 'webhook deliveries interrupted: they start again until they succeed'),
  });
};
