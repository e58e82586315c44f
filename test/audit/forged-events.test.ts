/**
 * gaps §29: other users of a server that is shared may append to the stream of a payment. What is not ours
 * there parks that payment alone: it reaches neither the read models nor the topics.
 */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type Projector, startProjector } from '../../projector/compose.ts';
import { encode } from '../../shared/event-store/codec.ts';
import {
  type EventStoreDb,
  openEventStoreDb,
} from '../../shared/event-store/eventstoredb/event-store.ts';
import { streamOf } from '../../shared/payment/events.ts';
import type { KeyDocument } from '../../shared/read-models/key-document.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import type { Relay } from '../../topics/relay.ts';
import { type StandIn, startStandIn } from '../support/eventstoredb-stand-in.ts';
import { appendLife, LIFE } from '../support/many-payments.ts';
import { type MemoryFeed, memoryDocument, memoryFeed } from '../support/memory-feed.ts';
import {
  newEvent,
  operationId,
  refunded,
  refundRequested,
  timeOf,
  wholeLife,
} from '../support/payment-events.ts';
import { readModelsIn } from '../support/read-models-here.ts';
import { startOver } from '../support/relaying.ts';
import { silent } from '../support/silent-log.ts';
import { verifyWhole } from '../support/tampering.ts';
import { folderOfEachTest } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const HIT = 'pay_hit';
const COPY = 'pay_copy';
const REFUSED = /the server refuses this stream to the service's user/;
const logger = { debug: () => undefined, warn: () => undefined };
const backOff = { minMs: 1, maxMs: 8 };

const folder = folderOfEachTest();
let standIn: StandIn;
let store: EventStoreDb;
let readModels: ReadModels;
let projector: Projector;
let relay: Relay;
let parts: { store: EventStoreDb; feed: MemoryFeed; checkpoint: KeyDocument };

const follow = async (): Promise<void> => {
  projector = await startProjector({ store, readModels, logger: silent, backOff });
  relay = startOver(parts);
  await projector.caughtUp;
};
const stop = async (): Promise<void> => {
  await projector.stop();
  await relay.stop();
};
const applied = (): Promise<void> =>
  until('all is applied and sent', async () => {
    const end = await store.end();
    const isApplied = (await readModels.checkpoint()) === end;
    return isApplied && relay.status().checkpoint === end;
  });

/** Appends events behind the last one, as another client: by `hashes` one of them fits, or neither. */
const forge = async (hashes: { previousHash?: string; hash?: string }): Promise<void> => {
  const last = (await store.readStream(streamOf(HIT))).at(-1);
  if (last === undefined) throw new Error('no event to append after');
  const after = { revision: last.revision, hash: hashes.previousHash ?? last.hash };
  const id = operationId(5);
  const events = [refundRequested, refunded].map((make) => make({ operationId: id, amount: 300 }));
  for (const { recorded } of encode(
    streamOf(HIT),
    after,
    events.map((one) => newEvent(one, timeOf(9))),
  )) {
    const { context, previousHash, schemaVersion, time, event } = recorded;
    const hash = hashes.hash ?? recorded.hash;
    standIn.append(streamOf(HIT), {
      id: recorded.id,
      type: event.type,
      data: JSON.stringify(event.data),
      metadata: JSON.stringify({ context, hash, previousHash, schemaVersion, time }),
    });
  }
};

const FORGED = {
  'without their hashes': { hash: '7'.repeat(64), reason: 'its text does not have its hash' },
  'that follow another event': {
    previousHash: '8'.repeat(64),
    reason: 'it does not follow the event before it',
  },
};

beforeEach(async () => {
  standIn = await startStandIn();
  store = await openEventStoreDb({ url: standIn.url, logger, backOff });
  readModels = readModelsIn(folder.path, 'read-models.sqlite');
  parts = { store, feed: memoryFeed(), checkpoint: memoryDocument() };
  await appendLife(store, HIT);
  await follow();
  await applied();
});
afterEach(async () => {
  await stop();
  await readModels.close();
  await store.close();
  await standIn.close();
});

describe.each(Object.entries(FORGED))('events of a payment %s', (_, { reason, ...hashes }) => {
  test.each(['while it runs', 'before it goes on'])('park it alone, %s', async (when) => {
    const before = await readModels.getAny(HIT);
    const sent = parts.feed.stored('events').length;
    if (when === 'before it goes on') await stop();
    await forge(hashes);
    if (when === 'before it goes on') await follow();
    await appendLife(store, 'pay_other');
    await applied();
    expect(await readModels.parked(10)).toMatchObject([{ paymentId: HIT, revision: LIFE, reason }]);
    expect(await readModels.getAny(HIT)).toEqual({ ...before, parked: true });
    expect(await readModels.getAny('pay_other')).toMatchObject({ parked: false });
    const why = expect.stringContaining(reason);
    expect(await relay.parked()).toMatchObject({ [HIT]: { from: LIFE, reason: why } });
    expect(parts.feed.stored('events')).toHaveLength(sent + LIFE);
  });

  test('park it in a rebuild too', async () => {
    await forge(hashes);
    await applied();
    const { parked, equal } = await projector.rebuild();
    expect({ parked, equal }).toMatchObject({ parked: [{ paymentId: HIT, reason }], equal: true });
  });
});

test('a copied stream does not write over the payment that its first event names', async () => {
  const before = await readModels.getAny(HIT);
  const copied = wholeLife(HIT, 'm_2').map((event) => newEvent(event));
  await store.append(streamOf(COPY), 'none', copied);
  await appendLife(store, 'pay_other');
  await applied();
  expect(await readModels.getAny(HIT)).toEqual(before);
  const reason = 'PaymentCreated is not an event of this payment';
  expect(await readModels.parked(10)).toMatchObject([{ paymentId: COPY, revision: 0, reason }]);
  expect(await relay.parked()).toMatchObject({ [COPY]: { from: 0, reason } });
  const { breaks } = await verifyWhole(store);
  expect(breaks?.named).toMatchObject([
    { stream: streamOf(COPY), revision: 0, reason: 'its text belongs to another place' },
  ]);
});

test('an event whose stream cannot be read now waits for it, and is not left out', async () => {
  const last = (await store.readStream(streamOf(HIT))).at(-1);
  const next = newEvent(refundRequested({ operationId: operationId(5), amount: 300 }), timeOf(9));
  const appended = await store.append(streamOf(HIT), last ?? 'none', [next]);
  // Both tries of a read.
  standIn.fail('read', 'unavailable', 2);
  const stopping = new AbortController();
  for await (const item of store.subscribe(last?.position ?? null, stopping.signal)) {
    expect(item).toEqual({ kind: 'events', events: appended });
    stopping.abort();
  }
});

test('a stream that the server refuses to the service parks its payment alone, and says so', async () => {
  standIn.metadata(streamOf(HIT), { $acl: { $r: '$admins' } });
  await until('it is parked', async () => (await readModels.parked(10)).length === 1);
  await appendLife(store, 'pay_other');
  await applied();
  const [parked] = await readModels.parked(10);
  expect(parked).toMatchObject({ paymentId: HIT, reason: expect.stringMatching(REFUSED) });
  expect(projector.status()).toMatchObject({ state: 'running', parked: 1 });
  expect(projector.status().counts.restarts).toBe(0);
  standIn.metadata(streamOf(HIT), {});
  expect(await projector.retryParked(HIT)).toBe(true);
});
