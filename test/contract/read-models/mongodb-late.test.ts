/** A MongoDB that is away when a process starts, and comes later: everything that is kept there goes on. */
import { expect, test } from '@jest/globals';
import { mongoKeyDocument } from '../../../shared/read-models/mongodb/key-document.ts';
import { openMongoReadModels } from '../../../shared/read-models/mongodb/read-models.ts';
import { mongoDeliveries } from '../../../shared/webhooks/delivery-store/mongodb.ts';
import { freePort } from '../../support/free-port.ts';
import { startMongoStandIn } from '../../support/mongodb-stand-in.ts';
import { READ_MODEL_SECRETS } from '../../support/read-models-here.ts';
import { until } from '../../support/until.ts';

/** Each first call waits for a server as long as the client does, 2 s. */
const TEST_MS_MAX = 30_000;

test(
  'read models, webhook deliveries and the kept documents are there once the server is',
  async () => {
    const port = await freePort();
    const url = `mongodb://127.0.0.1:${port}/payments`;
    const readModels = await openMongoReadModels({ url, secrets: READ_MODEL_SECRETS });
    const deliveries = mongoDeliveries(url);
    const kept = mongoKeyDocument({ url, name: 'relay-checkpoint' });
    const calls = {
      readModels: () => readModels.checkpoint(),
      search: () => readModels.search({}, 10),
      deliveries: () => deliveries.load('we_1'),
      attempts: () => deliveries.attempts('we_1', { limit: 10 }),
      save: () => deliveries.save('we_1', '{}', 0, []),
      kept: () => kept.load(),
      keep: () => kept.save('{}', 0),
    };
    const failing = async (): Promise<string[]> => {
      const tried = Object.entries(calls).map(([name, call]) =>
        call().then(
          () => [],
          () => [name],
        ),
      );
      return (await Promise.all(tried)).flat();
    };
    try {
      expect(await failing()).toEqual(Object.keys(calls));
      await startMongoStandIn(port);
      await until('every call is answered', async () => (await failing()).length === 0);
    } finally {
      await Promise.all([readModels.close(), deliveries.close(), kept.close()]);
    }
  },
  TEST_MS_MAX,
);
