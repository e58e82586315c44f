/**
 * A server that is away at the start, connections that it ends one after another, as at its restart, and
 * calls that it takes no bytes of: MongoDB's client can then wait for an end that it never hears of.
 */
import { afterEach, expect, test } from '@jest/globals';
import { ReadModelsUnavailable } from '../../shared/read-models/errors.ts';
import { mongoKeyDocument } from '../../shared/read-models/mongodb/key-document.ts';
import { openMongoReadModels } from '../../shared/read-models/mongodb/read-models.ts';
import { mongoDeliveries } from '../../webhooks/store/mongodb.ts';
import { freePort } from '../support/free-port.ts';
import { startMongoStandIn } from '../support/mongodb-stand-in.ts';
import { READ_MODEL_SECRETS } from '../support/read-models-here.ts';
import { type TcpProxy, tcpProxy } from '../support/tcp-proxy.ts';
import { succeeds, until } from '../support/until.ts';

/** The client checks a server at once where its last check was longer ago than 500 ms. */
const UNCHECKED_MS = 1000;

const proxies: TcpProxy[] = [];
afterEach(async () => {
  for (const proxy of proxies.splice(0)) await proxy.close();
});
/** A server behind a proxy of its own. */
const reached = async (): Promise<{ proxy: TcpProxy; url: string }> => {
  const proxy = await tcpProxy('127.0.0.1', Number(new URL(await startMongoStandIn()).port));
  proxies.push(proxy);
  return { proxy, url: `mongodb://127.0.0.1:${proxy.port}/payments` };
};

type Opened = { call(): Promise<unknown>; close(): Promise<void> };

/** All that this service has in MongoDB. */
const CLIENTS: Record<string, (url: string) => Opened | Promise<Opened>> = {
  'the read models': async (url) => {
    const readModels = await openMongoReadModels({ url, secrets: READ_MODEL_SECRETS });
    return { call: () => readModels.getAny('pay_1'), close: readModels.close };
  },
  'the state of webhook deliveries': (url) => {
    const deliveries = mongoDeliveries(url);
    return { call: () => deliveries.load('we_1'), close: deliveries.close };
  },
  'the checkpoint of the relay': (url) => {
    const kept = mongoKeyDocument({ url, name: 'relay-checkpoint' });
    return { call: kept.load, close: kept.close };
  },
};

const expectBack = async ([name, open]: [string, (typeof CLIENTS)[string]]): Promise<void> => {
  const { proxy, url } = await reached();
  const { call, close } = await open(url);
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
    await until(`${name} in reach`, () => succeeds(call()));
  } finally {
    await close();
  }
};

test('each client is in reach once a server that was away at its start has come', async () => {
  const port = await freePort();
  const opening = Object.values(CLIENTS).map((open) =>
    open(`mongodb://127.0.0.1:${port}/payments`),
  );
  const opened = await Promise.all(opening);
  const succeeding = () => Promise.all(opened.map(({ call }) => succeeds(call())));
  try {
    expect(await succeeding()).toEqual(opened.map(() => false));
    await startMongoStandIn(port);
    await until('each is in reach', async () => (await succeeding()).every(Boolean));
  } finally {
    await Promise.all(opened.map(({ close }) => close()));
  }
});

test('each client is in reach again after the server has ended all connections under a call', async () => {
  await Promise.all(Object.entries(CLIENTS).map(expectBack));
});

test('a save that the server takes only a part of ends in its time, and the next one is made', async () => {
  const { proxy, url } = await reached();
  const kept = mongoKeyDocument({ url, name: 'relay-checkpoint' });
  try {
    expect(await kept.load()).toBeUndefined();
    proxy.freeze();
    // More than the buffers of the sockets between hold.
    const save = kept.save('x'.repeat(15_000_000), 0);
    await expect(save).rejects.toThrow(ReadModelsUnavailable);
    proxy.shut();
    proxy.open();
    await until('a save succeeds', () => succeeds(kept.save('the place', 0)));
  } finally {
    await kept.close();
  }
});
