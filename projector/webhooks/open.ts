/** Opens the deliverer as the settings say. */
import type { EventStore } from '../../shared/event-store/port.ts';
import type { Config } from '../../shared/runtime/config.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { Metrics } from '../../shared/runtime/metrics.ts';
import { addressKinds } from '../../shared/webhooks/addresses.ts';
import type { DeliveryStore } from '../../shared/webhooks/delivery-store/port.ts';
import type { WebhookSecret } from '../../shared/webhooks/secret-check.ts';
import type { Projector } from '../compose.ts';
import { type Deliverer, type DelivererOptions, startDeliverer, type Turn } from './deliverer.ts';
import { disableIn } from './disable.ts';
import { onAttemptOf } from './metrics.ts';
import type { Sender } from './send.ts';
import { startDelivererThread } from './thread.ts';

export type OpenDeliverer = {
  config: Pick<Config, 'webhooks' | 'eventStoreDbUrl' | 'dataDir' | 'mongoUrl' | 'mode' | 'traces'>;
  store: EventStore;
  deliveries: DeliveryStore;
  secret: WebhookSecret;
  metrics: Metrics;
  logger: Logger;
  /** The deliverer runs in the process whose projector has the lease. */
  projector: Pick<Projector, 'status'>;
};

/** The client is loaded with the first message. */
const lateSender = (allowedNetworks: readonly string[]): Sender => {
  let opened: Promise<Sender> | undefined;
  const sender = (): Promise<Sender> => {
    opened ??= import('./send.ts').then(({ createSender }) =>
      createSender({ kindOf: addressKinds(allowedNetworks) }),
    );
    return opened;
  };
  return {
    send: async (...request) => (await sender()).send(...request),
    close: async () => (await opened)?.close(),
  };
};

/** Starts the deliverer in the thread that calls this. */
export const composeDeliverer = ({
  allowedNetworks,
  ...parts
}: Omit<DelivererOptions, 'sender'> & { allowedNetworks: readonly string[] }): Deliverer =>
  startDeliverer({ ...parts, sender: lateSender(allowedNetworks) });

/**
 * Starts the deliverer: here where a server keeps the log, else in a thread beside the requests. An
 * engine out of reach does not delay the start.
 */
export const openDeliverer = (options: OpenDeliverer): Deliverer => {
  const { config, store, deliveries, secret, metrics, logger, projector } = options;
  const { allowedNetworks } = config.webhooks;
  const turn = (): Turn => {
    const { state } = projector.status();
    if (state === 'standing-by') return 'of another';
    return state === 'starting' || state === 'stopped' ? 'unknown' : 'own';
  };
  const disable = disableIn(store, logger);
  const onAttempt = onAttemptOf(metrics);
  const parts = { store, deliveries, allowedNetworks, disable, secret, logger, turn, onAttempt };
  if (config.eventStoreDbUrl !== undefined) return composeDeliverer(parts);
  const { dataDir, mongoUrl, mode, traces } = config;
  return startDelivererThread({ ...parts, config: { dataDir, mongoUrl, mode, traces } });
};
