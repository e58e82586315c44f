/** The state of deliveries as the routes read it: an engine that cannot be read is 503, as for read models. */
import { ReadModelsUnavailable } from '../../shared/read-models/errors.ts';
import { firstLineOf } from '../../shared/runtime/error-text.ts';
import type { DeliveryStore } from '../../shared/webhooks/delivery-store/port.ts';

type Readable = Pick<DeliveryStore, 'load' | 'attempts'>;

const unavailable = (error: unknown): never => {
  const message = `the state of webhook deliveries cannot be read: ${firstLineOf(error)}`;
  throw new ReadModelsUnavailable(message, { cause: error });
};

/** Every call throws ReadModelsUnavailable where the engine cannot be read. */
export const readableDeliveries = ({ load, attempts }: Readable): Readable => ({
  load: (...args) => load(...args).catch(unavailable),
  attempts: (...args) => attempts(...args).catch(unavailable),
});
