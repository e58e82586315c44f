import type { Config } from '../../runtime/config.ts';
import type { DeliveryStore } from './port.ts';
import { sqliteDeliveries } from './sqlite.ts';

/** `fileOf` gives a path in the data folder, and is not called for a server. */
type Place = { config: Pick<Config, 'mongoUrl'>; fileOf(name: string): string };

export const openDeliveries = async ({ config, fileOf }: Place): Promise<DeliveryStore> => {
  if (config.mongoUrl === undefined) return sqliteDeliveries(fileOf('webhook-deliveries.sqlite'));
  return (await import('./mongodb.ts')).mongoDeliveries(config.mongoUrl);
};
