import type { Config } from '../../shared/runtime/config.ts';
import type { DeliveryStore } from './port.ts';
import { sqliteDeliveries } from './sqlite.ts';

type DeliveriesOptions = {
  config: Pick<Config, 'mongoUrl'>;
  /** The path of a file in the data folder; not called where a server is set. */
  fileOf(name: string): string;
};

/** Chooses the store of deliveries by the settings; a server may still be out of reach. */
export const openDeliveries = async (options: DeliveriesOptions): Promise<DeliveryStore> => {
  const { mongoUrl } = options.config;
  if (mongoUrl === undefined) return sqliteDeliveries(options.fileOf('webhook-deliveries.sqlite'));
  return (await import('./mongodb.ts')).mongoDeliveries(mongoUrl);
};
