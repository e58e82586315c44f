/** Opens the deliverer as the settings say. */
import type { EventStore } from '../../shared/event-store/port.ts';
import type { Config } from '../../shared/runtime/config.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { Metrics } from '../../shared/runtime/metrics.ts';
import { addressKinds } from '../../shared/webhooks/addresses.ts';
import type { DeliveryStore } from '../../shared/webhooks/delivery-store/port.ts';
import type { WebhookSecret } from '../../shared/webhooks/secret-check.ts';
import type { Projector } from '../compose.ts';
import { type Deliverer, startDeliverer, type Turn } from './deliverer.ts';
import { onAttemptOf } from './metrics.ts';
import type { Sender } from './send.ts';
import { startDelivererThread } from './thread.ts';

export type OpenDeliverer = {
  config: Pick<Config, 'webhooks' | 'dataDir' | 'mongoUrl' | 'mode' | 'traces'>;
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

/**
 * Starts the deliverer: in a thread where one can read the log by itself, else here, in a process that
 * serves no payments. An engine out of reach does not delay the start.
 */
export const openDeliverer = (options: OpenDeliverer): Deliverer => {
  const { config, store, deliveries, secret, metrics, logger, projector } = options;
  const { allowedNetworks } = config.webhooks;
  const turn = (): Turn => {
    const { state } = projector.status();
    if (state === 'standing-by') return 'of another';
    return state === 'starting' || state === 'stopped' ? 'unknown' : 'own';
  };
  const parts = { store, deliveries, secret, logger, turn, onAttempt: onAttemptOf(metrics) };
  const { scan } = store.stored;
  if (scan === undefined) return startDeliverer({ ...parts, sender: lateSender(allowedNetworks) });
  const { dataDir, mongoUrl, mode, traces } = config;
  const settings = { dataDir, mongoUrl, mode, traces };
  return startDelivererThread({ ...parts, scan, allowedNetworks, settings });
};
