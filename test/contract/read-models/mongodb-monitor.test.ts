/**
 * Connections that a server ends one after another, as at its restart, and calls that it takes no bytes
 * of: MongoDB's client can then wait for an end that it never hears of.
 */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ReadModelsUnavailable } from '../../../shared/read-models/errors.ts';
import { mongoKeyDocument } from '../../../shared/read-models/mongodb/key-document.ts';
import { openMongoReadModels } from '../../../shared/read-models/mongodb/read-models.ts';
import { mongoDeliveries } from '../../../shared/webhooks/delivery-store/mongodb.ts';
import { startMongoStandIn } from '../../support/mongodb-stand-in.ts';
import { READ_MODEL_SECRETS } from '../../support/read-models-here.ts';
import { type TcpProxy, tcpProxy } from '../../support/tcp-proxy.ts';
import { until } from '../../support/until.ts';

/** The client checks a server at once where its last check was longer ago than 500 ms. */
const UNCHECKED_MS = 1000;
const BACK_MS = 15_000;
const TEST_MS = 30_000;

let proxy: TcpProxy;
let url: string;
beforeEach(async () => {
  proxy = await tcpProxy('127.0.0.1', Number(new URL(await startMongoStandIn()).port));
  url = `mongodb://127.0.0.1:${proxy.port}/payments`;
});
afterEach(() => proxy.close());

type Opened = { call(): Promise<unknown>; close(): Promise<void> };

const CLIENTS: [string, () => Promise<Opened>][] = [
  [
    'read models are',
    async () => {
      const readModels = await openMongoReadModels({ url, secrets: READ_MODEL_SECRETS });
      return { call: () => readModels.getAny('pay_1'), close: readModels.close };
    },
  ],
  [
    'state of webhook deliveries is',
    async () => {
      const deliveries = mongoDeliveries(url);
      return { call: () => deliveries.load('we_1'), close: deliveries.close };
    },
  ],
  [
    'checkpoint of the relay is',
    async () => {
      const kept = mongoKeyDocument({ url, name: 'relay-checkpoint' });
      return { call: kept.load, close: kept.close };
    },
  ],
];

const succeeds = (call: () => Promise<unknown>): Promise<boolean> =>
  call().then(
    () => true,
    () => false,
  );

test.each(CLIENTS)(
  'the %s in reach again after the server has ended all connections under a call',
  async (_, open) => {
    const { call, close } = await open();
    try {
      const begun = performance.now();
      await until('its last check is long ago', async () => {
        await call();
        return performance.now() - begun >= UNCHECKED_MS;
      });
      proxy.beforeRequest('find', () => {
        proxy.shut();
        proxy.open();
      });
      await until('a call succeeds', () => succeeds(call), BACK_MS);
    } finally {
      await close();
    }
  },
  TEST_MS,
);

test(
  'a save that the server takes only a part of ends in its time, and the next one is made',
  async () => {
    const kept = mongoKeyDocument({ url, name: 'relay-checkpoint' });
    try {
      expect(await kept.load()).toBeUndefined();
      proxy.freeze();
      // More than the buffers of the sockets between hold.
      const save = kept.save('x'.repeat(15_000_000), 0);
      await expect(save).rejects.toThrow(ReadModelsUnavailable);
      proxy.shut();
      proxy.open();
      await until('a save succeeds', () => succeeds(() => kept.save('the place', 0)), BACK_MS);
    } finally {
      await kept.close();
    }
  },
  TEST_MS,
);
