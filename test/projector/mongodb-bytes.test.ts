/**
 * P1, ADR-0121: 50 to 200 bits changed at random in what MongoDB holds of the read models. No GET and no list
 * ever shows what a payment is not, and each change that anybody could meet is told, or harmless.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { BSON, type Document, MongoClient } from 'mongodb';
import { compareAll } from '../../projector/compare.ts';
import { startProjector } from '../../projector/compose.ts';
import { behindTheStream, getPayment } from '../../query-api/get-payment.ts';
import { ListParameters, listPayments } from '../../query-api/list-payments.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { openMongoReadModels } from '../../shared/read-models/mongodb/read-models.ts';
import { resultOf } from '../../shared/runtime/jobs.ts';
import { timesOf } from '../support/long-run-share.ts';
import { appendLives } from '../support/many-payments.ts';
import { startMongoStandIn } from '../support/mongodb-stand-in.ts';
import { putPoisonEvents } from '../support/poison-events.ts';
import { type Random, randomOf } from '../support/random.ts';
import { READ_MODEL_SECRETS } from '../support/read-models-here.ts';
import { silent } from '../support/silent-log.ts';
import { openRows } from '../support/tampering.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

type Stored = { collection: string; document: Document };
/** What was changed: the collection without the name of its form, the field, and the document as it was. */
type Change = { collection: string; field: string; document: Document };

const FORM = /^read_models_\d+_(\d+_)?/;

/** The document with a bit changed in the bytes of a field, its type and name too; undefined if that is no BSON. */
const changed = ({ document }: Stored, random: Random): [string, Document] | undefined => {
  const bytes = Buffer.from(BSON.serialize(document));
  const fields = Object.entries(document);
  const sizeOf = (some: typeof fields): number =>
    BSON.serialize(Object.fromEntries(some)).length - BSON.serialize({}).length;
  const at = random.between(0, fields.length - 1);
  const begin = Int32Array.BYTES_PER_ELEMENT + sizeOf(fields.slice(0, at));
  const place = random.between(begin, begin + sizeOf(fields.slice(at, at + 1)) - 1);
  bytes[place] = (bytes[place] as number) ^ (1 << random.between(0, 7));
  try {
    return [fields[at]?.[0] ?? '', BSON.deserialize(bytes)];
  } catch {
    return undefined;
  }
};

/** All documents of a database, as they are now. */
const openBytes = async (url: string, random: Random) => {
  const client = await new MongoClient(url).connect();
  const db = client.db();
  const stored: Stored[] = [];
  for (const { name } of await db.listCollections({}, { nameOnly: true }).toArray())
    for (const document of await db.collection(name).find().toArray())
      stored.push({ collection: name, document });

  const putBack = async (name: string): Promise<void> => {
    const own = stored.filter(({ collection }) => collection === name);
    await db.collection(name).deleteMany({});
    await db.collection(name).insertMany(own.map(({ document }) => document));
  };
  const tryOnce = async (look: (change: Change) => Promise<void>): Promise<boolean> => {
    const one = stored[random.between(0, stored.length - 1)] as Stored;
    const { collection, document } = one;
    const [field, other] = changed(one, random) ?? [];
    if (field === undefined || other === undefined) return false;
    await db.collection(collection).deleteOne({ _id: document._id });
    try {
      await db.collection(collection).insertOne(other);
    } catch {
      // The server takes no such document.
      await putBack(collection);
      return false;
    }
    await look({ collection: collection.replace(FORM, ''), field, document });
    await putBack(collection);
    return true;
  };

  return {
    /** Changes one bit, looks, and puts it back. */
    change: async (look: (change: Change) => Promise<void>): Promise<void> => {
      while (!(await tryOnce(look)));
    },
    close: () => client.close(),
  };
};

const CHANGES = timesOf(200, 16);
const MERCHANT = 'm_1';
const POISONED = ['pay_poisoned_0', 'pay_poisoned_1', 'pay_poisoned_2'];
const IDS = [...POISONED, ...Array.from({ length: 6 }, (_, n) => `pay_healthy_${n}`)];
const BACK_OFF = { minMs: 1, maxMs: 8 };

/** What a merchant and an auditor see: a text for each GET, those of the list, and what is reported. */
type Seen = { gets: string[]; list: string[]; reported: string[] };

const random = randomOf();

// Over the stand-in alone: FerretDB rejects a statement over some of such documents as a fault of its server.
describe(`bytes of MongoDB`, () => {
  const folder = temporaryFolder();
  let url: string;
  let store: EventStore;
  let clean: Seen;
  const open = () => openMongoReadModels({ url, secrets: READ_MODEL_SECRETS });

  const look = async (): Promise<Seen> => {
    const readModels = await open();
    const reported: string[] = [];
    readModels.onDamage((paymentId) => reported.push(`${paymentId} damaged`));
    const behind = behindTheStream(store);
    try {
      const gets = await Promise.all(
        IDS.map((paymentId) =>
          getPayment({ store, readModels, behind }, paymentId, MERCHANT).then(
            (found) => found?.body ?? 'none',
            (error: Error) => `${paymentId}: ${error.name}`,
          ),
        ),
      );
      const request = ListParameters.parse({});
      const asStored = async ({ body }: { body: string }) => body;
      const page = await listPayments({ store, readModels }, MERCHANT, request, asStored);
      const list = (JSON.parse(page) as { payments: object[] }).payments;
      const { signal } = new AbortController();
      const { named } = await resultOf(compareAll({ store, readModels }, signal));
      reported.push(...named.map(({ paymentId, kind }) => `${paymentId} ${kind}`));
      return { gets, list: list.map((one) => JSON.stringify(one)).sort(), reported };
    } finally {
      await readModels.close();
    }
  };

  /** What the projector says of a changed checkpoint at its start; '' where it goes on and all is well. */
  const saidByProjector = async (): Promise<string> => {
    const readModels = await open();
    try {
      const options = { store, readModels, logger: silent, backOff: BACK_OFF };
      const projector = await startProjector(options);
      const { status, stop } = projector;
      await until('it runs, or says why not', () => {
        const { state, error } = status();
        return state === 'running' || error !== undefined;
      });
      const { error = '' } = status();
      await stop();
      return error;
    } catch (error) {
      return (error as Error).message;
    } finally {
      await readModels.close();
    }
  };

  beforeAll(async () => {
    url = await startMongoStandIn();
    const file = join(folder.path, 'events.sqlite');
    const filled = await openSqliteEventStore({ file });
    await appendLives(filled, IDS);
    await filled.close();
    store = await openSqliteEventStore({ file });
    const rows = openRows(file);
    putPoisonEvents(rows, POISONED, random);
    rows.close();
    const readModels = await open();
    const projector = await startProjector({ store, readModels, logger: silent });
    await projector.caughtUp;
    await projector.stop();
    await readModels.close();
    clean = await look();
  });
  afterAll(async () => {
    await store.close();
    folder.remove();
  });

  test(`${CHANGES} changes of a bit are told or harmless, and none is served`, async () => {
    const parked = POISONED.map((paymentId) => `${paymentId} parked`);
    expect(clean.reported).toEqual(parked);
    const bytes = await openBytes(url, random);
    const counts = new Map<string, number>();
    const wrong: string[] = [];
    const check = async (change: Change): Promise<void> => {
      const seen = await look();
      const news = seen.reported.filter((one) => !parked.includes(one));
      const what = `${change.collection} ${change.field} of ${change.document._id}`;
      const isMissed = clean.list.some((one) => !seen.list.includes(one));
      if (String(seen.gets) !== String(clean.gets)) wrong.push(`${what}: GET`);
      if (seen.list.some((one) => !clean.list.includes(one))) wrong.push(`${what}: list`);
      if (isMissed && news.length === 0) wrong.push(`${what}: not told`);
      const said = change.collection === 'control' ? await saidByProjector() : '';
      if (said !== '' && !/checkpoint|position/.test(said)) wrong.push(`${what}: ${said}`);
      const outcome = news.length > 0 || said !== '' ? 'told' : 'harmless';
      const kind = `${change.collection} ${change.field} ${outcome}`;
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
    };
    try {
      for (let n = 0; n < CHANGES; n += 1) await bytes.change(check);
    } finally {
      await bytes.close();
    }
    const tally = [...counts].map(([kind, count]) => `${kind} ${count}`).sort();
    process.stderr.write(`bytes of MongoDB: ${tally.join(', ')}\n`);
    expect(wrong).toEqual([]);
    expect((await look()).reported).toEqual(parked);
  });
});
