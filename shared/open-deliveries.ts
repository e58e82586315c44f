/** Apart from open-drivers.ts, because the thread of the deliverer loads no other engine. */
import type { Config } from './runtime/config.ts';
import { ATTEMPTS_MAX, type DeliveryStore } from './webhooks/delivery-store/port.ts';
import { sqliteDeliveries } from './webhooks/delivery-store/sqlite.ts';

/** `fileOf` gives a path in the data folder, and is not called for a server. */
type Place = { config: Pick<Config, 'mongoUrl'>; fileOf(name: string): string };

export const openDeliveries = async ({ config, fileOf }: Place): Promise<DeliveryStore> => {
  if (config.mongoUrl === undefined) return sqliteDeliveries(fileOf('webhook-deliveries.sqlite'));
  const { mongoDeliveries } = await import('./read-models/mongodb/deliveries.ts');
  return mongoDeliveries({ url: config.mongoUrl, attemptsMax: ATTEMPTS_MAX });
};
