/**
 * The state of webhook deliveries in the engine that the settings name. Apart from open-drivers.ts: the
 * thread of the deliverer needs no other engine, and loads none.
 */
import type { Config } from './runtime/config.ts';
import { ATTEMPTS_MAX, type DeliveryStore } from './webhooks/delivery-store/port.ts';
import { sqliteDeliveries } from './webhooks/delivery-store/sqlite.ts';

/** Where the state is kept: `fileOf` gives a path in the data folder, and is not called for a server. */
type Place = { config: Pick<Config, 'mongoUrl'>; fileOf(name: string): string };

/** Opens the state of webhook deliveries; nothing is read or made before its first use. */
export const openDeliveries = async ({ config, fileOf }: Place): Promise<DeliveryStore> => {
  if (config.mongoUrl === undefined) return sqliteDeliveries(fileOf('webhook-deliveries.sqlite'));
  const { mongoDeliveries } = await import('./read-models/mongodb/deliveries.ts');
  return mongoDeliveries({ url: config.mongoUrl, attemptsMax: ATTEMPTS_MAX });
};
