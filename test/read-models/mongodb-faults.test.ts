/** What the read models in MongoDB do when their server is not there, says nothing, or has lost them. */
import { type AddressInfo, createServer, type Server } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import {
  CheckpointMoved,
  ReadModelsUnavailable,
  RebuildRunning,
} from '../../shared/read-models/errors.ts';
import { openMongoReadModels } from '../../shared/read-models/mongodb/read-models.ts';
import type { NextGeneration, ReadModelChange, ReadModels } from '../../shared/read-models/port.ts';
import { freePort } from '../support/free-port.ts';
import { type MongoDatabase, mongoServer } from '../support/mongo-server.ts';
import { READ_MODEL_SECRETS } from '../support/read-models-here.ts';
import { type TcpProxy, tcpProxy } from '../support/tcp-proxy.ts';
import { ENDS_MS_MAX, HANGS_MS } from '../support/time-bounds.ts';
import { succeeds, until, within } from '../support/until.ts';
import { readModelAt } from './opened.ts';

const change = (paymentId: string, revision: number): ReadModelChange => ({
  kind: 'readModel',
  readModel: readModelAt(paymentId, revision),
});

const everyCall = (readModels: ReadModels): [string, () => Promise<unknown>][] => [
  ['get', () => readModels.get('pay_1', 'm_1')],
  ['getAny', () => readModels.getAny('pay_1')],
  ['search', () => readModels.search({ text: 'x' }, 10)],
  ['unresolved', () => readModels.unresolved(10)],
  ['parked', () => readModels.parked(10)],
  ['checkpoint', () => readModels.checkpoint()],
  ['load', () => readModels.load('pay_9')],
  ['apply', () => readModels.apply([change('pay_1', 0)], null, 'p1')],
  ['lease', () => readModels.lease('a', 1000)],
  ['release', () => readModels.release('a')],
  ['filledTo', () => readModels.filledTo()],
];

const expectUnavailable = async (call: () => Promise<unknown>): Promise<void> => {
  const error = await call().then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ReadModelsUnavailable);
  expect((error as Error).message).toMatch(/^the read models .+$/);
};

/** Each call in its budget, and a wait that does not wait for what cannot come. */
const expectRefusals = async (readModels: ReadModels): Promise<void> => {
  const calls = everyCall(readModels).map(([, call]) => call);
  await within(ENDS_MS_MAX, () => Promise.all(calls.map(expectUnavailable)));
  // One after the other, in less than each of them would take.
  await within(ENDS_MS_MAX, async () => {
    for (const call of calls) await expectUnavailable(call);
    expect(await readModels.waitForRevision('pay_9', 0, HANGS_MS)).toBe(false);
  });
};

describe('read models in MongoDB without their server', () => {
  let server: Server | undefined;
  let readModels: ReadModels | undefined;
  afterEach(async () => {
    await readModels?.close();
    readModels = undefined;
    server?.close();
    server = undefined;
  });

  test.each([
    '',
    'nonsense',
    'http://127.0.0.1/payments',
    'mongodb://',
    'mongodb:///payments',
    'mongodb://u:hunter2@127.0.0.1:27017',
    'mongodb://u:hunter2@127.0.0.1:27017/',
    'mongodb://u:hunter2@127.0.0.1:27017/?w=1',
    'mongodb://u:hunter2@127.0.0.1:99999/payments',
    'mongodb://u:hunter2@127.0.0.1/payments?authSource',
    'mongodb://u:hunter2@127.0.0.1/payments?no-such-option=1',
  ])('%j is refused in one line that does not repeat it', async (url) => {
    const error: unknown = await openMongoReadModels({ url, secrets: READ_MODEL_SECRETS }).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(ReadModelsUnavailable);
    expect((error as Error).message).toMatch(/^the address of the read models .+$/);
    expect((error as Error).message).not.toContain('hunter2');
  });

  test('they open at a dead port and at a server that says nothing: no call outlives its budget', async () => {
    // It reads, so that it sees a connection end.
    server = createServer((socket) => void socket.on('error', () => {}).resume());
    server.listen(0, '127.0.0.1');
    await new Promise((resolve) => server?.once('listening', resolve));
    const silent = (server.address() as AddressInfo).port;
    const opened = await Promise.all(
      [silent, await freePort()].map((port) =>
        openMongoReadModels({
          url: `mongodb://127.0.0.1:${port}/payments`,
          secrets: READ_MODEL_SECRETS,
        }),
      ),
    );
    await Promise.all(opened.map(expectRefusals));
    await Promise.all(opened.map((one) => one.close()));
  });

  test('what is written is checked to be text, so that no part of it is read as a query', async () => {
    readModels = await openMongoReadModels({
      url: 'mongodb://127.0.0.1:1/payments',
      secrets: READ_MODEL_SECRETS,
    });
    const query = { $gt: '' } as unknown as string;
    await expect(readModels.get(query, 'm_1')).rejects.toThrow(TypeError);
    await expect(readModels.getAny(query)).rejects.toThrow(TypeError);
    await expect(readModels.lease(query, 1)).rejects.toThrow(TypeError);
  });
});

const mongo = await mongoServer();
const reason = 'skip' in mongo ? ` (skipped: ${mongo.skip})` : '';
const suite = 'skip' in mongo ? describe.skip : describe;

/** For so long the client looks for its server. */
const SELECTION_MS = 2000;

/** How long a rebuild of these tests keeps others out without renewing its lease. */
const REBUILD_MS = 600;
const open = (url: string, rebuildMs = REBUILD_MS): Promise<ReadModels> =>
  openMongoReadModels({ url, secrets: READ_MODEL_SECRETS, rebuildMs });

/** Removes a payment's document, as a copy from before its first event does. */
const removeDocument = async (url: string, _id: string): Promise<void> => {
  const client = await new MongoClient(url).connect();
  const names = await client.db().listCollections({}, { nameOnly: true }).toArray();
  const { name = '' } = names.find((one) => one.name.endsWith('_payments')) ?? {};
  await client.db().collection<{ _id: string }>(name).deleteOne({ _id });
  await client.close();
};

suite(`read models in MongoDB whose server fails${reason}`, () => {
  let database: MongoDatabase;
  let proxy: TcpProxy;
  let throughProxy: string;
  let readModels: ReadModels;

  beforeEach(async () => {
    if ('skip' in mongo) return;
    database = mongo.database();
    const { hostname, port } = new URL(database.url);
    proxy = await tcpProxy(hostname, Number(port));
    const url = new URL(database.url);
    url.host = `127.0.0.1:${proxy.port}`;
    url.searchParams.set('directConnection', 'true');
    throughProxy = url.href;
    readModels = await open(throughProxy);
    await readModels.apply([change('pay_1', 0)], null, 'p1');
  });
  afterEach(async () => {
    await readModels.close();
    await proxy.close();
    await database.drop();
  });
  const back = (own = readModels): Promise<void> =>
    until('the read models are back', () => succeeds(own.filledTo()));
  /** Once more where a busy machine did not find the server again within the client's time for that. */
  const withPatience = async (call: () => Promise<unknown>, own = readModels): Promise<void> => {
    const begun = performance.now();
    try {
      await call();
    } catch (error) {
      if (performance.now() - begun < SELECTION_MS) throw error;
      await back(own);
      await call();
    }
  };

  test.each<[string, (through: TcpProxy) => void, (through: TcpProxy) => void]>([
    ['killed', ({ shut }) => shut(), (through) => through.open()],
    ['frozen, its connections stay', ({ freeze }) => freeze(), ({ thaw }) => thaw()],
  ])(
    '%s: refused within the budgets, at once from then on, and back by itself',
    async (_, go, come) => {
      go(proxy);
      await expectRefusals(readModels);
      come(proxy);
      await back();
      expect(await readModels.checkpoint()).toBe('p1');
      const wait = readModels.waitForRevision('pay_1', 1, HANGS_MS);
      await readModels.apply([change('pay_1', 1)], 'p1', 'p2');
      expect(await wait).toBe(true);
      expect(await readModels.get('pay_1', 'm_1')).toMatchObject({ revision: 1 });
    },
  );

  test('a broken connection is replaced, and no call fails', async () => {
    for (let round = 0; round < 5; round += 1) {
      proxy.shut();
      proxy.open();
      expect(await readModels.get('pay_1', 'm_1')).toMatchObject({ revision: 0 });
    }
  });

  test('a batch that the server cannot be given fails as that, not as another writer’s', async () => {
    proxy.beforeRequest('insert', () => proxy.shut());
    await expect(readModels.apply([change('pay_2', 0)], 'p1', 'p2')).rejects.toThrow(
      /^the read models cannot be reached: /,
    );
    proxy.open();
    await back();
  });

  test('a server that takes less at a time gets a batch in smaller pieces, and larger ones once it takes them', async () => {
    let place = 1;
    /** Applies a batch of new payments until it is taken; gives the pieces of its last try. */
    const applied = async (documents: number): Promise<number> => {
      const batch = Array.from({ length: documents }, (_, n) => change(`pay_${place}_${n}`, 0));
      const places = [`p${place}`, `p${place + 1}`] as const;
      place += 1;
      await until('the batch is taken', async () => {
        proxy.taken('insert');
        const failed = await readModels.apply(batch, ...places).catch(() => 'failed');
        if (failed !== undefined) await back();
        return failed === undefined;
      });
      return proxy.taken('insert');
    };
    expect(await applied(64)).toBe(1);
    // A document of these has some 1,050 bytes: between eight and sixteen.
    proxy.takeAtMost(12_000);
    expect(await applied(64)).toBe(8);
    proxy.takeAtMost(Number.POSITIVE_INFINITY);
    const pieces: number[] = [];
    for (let batches = 0; batches < 4; batches += 1) pieces.push(await applied(64));
    expect(pieces).toEqual([4, 2, 1, 1]);
  });

  test('when the server stops, every running wait ends with false', async () => {
    const waits = Array.from({ length: 256 }, (_, n) =>
      readModels.waitForRevision(`pay_${n}`, 9, HANGS_MS),
    );
    proxy.shut();
    expect(await Promise.all(waits)).toEqual(waits.map(() => false));
  });

  test('wiped: the writer is refused, starts from the beginning, and fills it again', async () => {
    await readModels.apply([change('pay_1', 1)], 'p1', 'p2');
    await database.drop();
    await expect(readModels.apply([change('pay_1', 2)], 'p2', 'p3')).rejects.toThrow(
      CheckpointMoved,
    );
    expect(await readModels.checkpoint()).toBeNull();
    expect(await readModels.load('pay_1')).toBeUndefined();
    expect(await readModels.get('pay_1', 'm_1')).toBeUndefined();
    await readModels.apply([change('pay_1', 5)], null, 'p3');
    expect(await readModels.get('pay_1', 'm_1')).toMatchObject({ revision: 5 });
  });

  test('a lost response: the same batch again changes nothing, and the next one is applied', async () => {
    const batch = [change('pay_1', 1), change('pay_2', 0)];
    // Only the update of the checkpoint names the new one, and it is the last write of the batch.
    let isLost = false;
    proxy.beforeResponseTo('p2', () => {
      isLost = true;
      proxy.shut();
    });
    await expect(readModels.apply(batch, 'p1', 'p2')).rejects.toThrow(ReadModelsUnavailable);
    expect(isLost).toBe(true);
    proxy.open();
    await back();
    const at = await readModels.checkpoint();
    expect(at).toBe('p2');
    await readModels.apply(batch, at, 'p2');
    expect(await readModels.checkpoint()).toBe('p2');
    expect(await readModels.getAny('pay_1')).toMatchObject({ revision: 1 });
    expect(await readModels.getAny('pay_2')).toMatchObject({ revision: 0 });
    await readModels.apply([change('pay_2', 1)], 'p2', 'p3');
    expect(await readModels.getAny('pay_2')).toMatchObject({ revision: 1 });
  });

  test('P1: the documents of a batch whose checkpoint was not stored are read again, not remembered', async () => {
    // The documents are stored by then.
    proxy.beforeRequest('position', () => proxy.shut());
    const batch = [change('pay_1', 1), change('pay_2', 0)];
    await expect(readModels.apply(batch, 'p1', 'p2')).rejects.toThrow(ReadModelsUnavailable);
    await removeDocument(database.url, 'pay_2');
    proxy.open();
    await back();
    expect(await readModels.checkpoint()).toBe('p1');
    expect(await readModels.load('pay_1')).toMatchObject({ revision: 1 });
    expect(await readModels.load('pay_2')).toBeUndefined();
    await readModels.apply(batch, 'p1', 'p2');
    expect(await readModels.getAny('pay_2')).toMatchObject({ revision: 0 });
  });

  describe('a rebuild', () => {
    /** Another process, whose connections stay. */
    let other: ReadModels;
    beforeEach(async () => {
      other = await open(database.url);
    });
    afterEach(() => other.close());

    const opened = async (from: ReadModels, revision: number): Promise<NextGeneration> => {
      const tried = { next: undefined as NextGeneration | undefined };
      await until('a rebuild may begin', async () => {
        tried.next = await from.openGeneration().catch(() => undefined);
        return tried.next !== undefined;
      });
      const { next } = tried as { next: NextGeneration };
      await next.apply([change('pay_1', revision)], null, 'p9');
      return next;
    };
    const expectServed = async (revision: number, checkpoint: string): Promise<void> => {
      for (const process of [readModels, other]) {
        await until('it is known', async () => (await process.checkpoint()) === checkpoint);
        expect(await process.getAny('pay_1')).toMatchObject({ revision });
        expect((await process.search({}, 10)).documents).toHaveLength(1);
      }
    };
    /** Only the update that switches, and none of the reads, names this field. */
    const SWITCH = 'generation';

    test('whose switch is stored and repeated after a broken connection is served', async () => {
      // No renewal of its lease meets the broken connection first.
      const own = await open(throughProxy, HANGS_MS);
      const next = await opened(own, 3);
      proxy.beforeResponseTo(SWITCH, () => {
        proxy.shut();
        proxy.open();
      });
      await withPatience(next.serve, own);
      await next.end();
      await own.close();
      await expectServed(3, 'p9');
    });

    test('whose switch is stored and not acknowledged is served, and not removed', async () => {
      const next = await opened(readModels, 3);
      proxy.beforeResponseTo(SWITCH, () => proxy.shut());
      await expect(next.serve()).rejects.toThrow(ReadModelsUnavailable);
      proxy.open();
      await back();
      await next.end();
      await expectServed(3, 'p9');
    });

    test('which another one has followed meanwhile is not served, and removes nothing', async () => {
      const next = await opened(readModels, 3);
      proxy.freeze();
      const later = await opened(other, 5);
      proxy.thaw();
      // A busy machine freezes it for so long that its circuit breaker opens.
      await back();
      await expect(next.serve()).rejects.toThrow(RebuildRunning);
      await expect(next.end()).rejects.toThrow(RebuildRunning);
      await later.end();
      await expect(next.serve()).rejects.toThrow(RebuildRunning);
      await expectServed(0, 'p1');
    });

    test('that drops the old generation under a slow list leaves no list empty', async () => {
      const next = await opened(other, 3);
      // It does not know yet which generation is served.
      const reader = await open(throughProxy);
      proxy.beforeResponseTo('served', async () => {
        await next.serve();
        await next.end();
      });
      const { documents } = await reader.search({}, 10);
      await reader.close();
      expect(documents).toMatchObject([{ revision: 3 }]);
    });

    test('whose generation cannot be removed keeps no later one out', async () => {
      const next = await opened(readModels, 3);
      proxy.shut();
      await expect(next.end()).rejects.toThrow(ReadModelsUnavailable);
      proxy.open();
      await back();
      const later = await opened(readModels, 5);
      await later.serve();
      await later.end();
      await expectServed(5, 'p9');
    });
  });
});
