/** ADR-0185: on SQLite the new read models are filled in the thread of the log, beside the event loop. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { newThread } from '../../embedded/jobs.ts';
import { type Projector, startProjector } from '../../projector/compose.ts';
import { moneyDifferences, rebuild } from '../../projector/rebuild.ts';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../shared/event-store/sqlite/event-store.ts';
import { streamOf } from '../../shared/payment/events.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import type { JobThread, NewThread } from '../../shared/runtime/jobs.ts';
import { appendLives } from '../support/many-payments.ts';
import { created, newEvent, personalDataErased } from '../support/payment-events.ts';
import { readModelsAt } from '../support/read-models-here.ts';
import { silent } from '../support/silent-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { HANGS_MS } from '../support/time-bounds.ts';

const LIFE = 6;
/** Two pages of the thread, and a bit. */
const PAYMENTS = 340;

describe('a rebuild of SQLite read models from a SQLite log', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let store: SqliteEventStore;
  let thread: JobThread;
  let readModels: ReadModels;
  let projector: Projector;
  let errors: string[];
  /** The indexes of a file that no rebuild has made. */
  let allIndexes: string[];
  const error = (_: object, message: string) => void errors.push(message);
  const logger = { ...silent, error };
  const file = () => join(folder.path, 'read models.db');

  const indexes = () => {
    const db = new DatabaseSync(file(), { readOnly: true });
    const found = db.prepare("SELECT sql FROM sqlite_schema WHERE type = 'index'").all();
    expect(db.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
    db.close();
    return found.map(({ sql }) => String(sql)).sort();
  };

  // The tests of the log as it is come first, then those that add to it.
  beforeAll(async () => {
    folder = temporaryFolder();
    const opening: NewThread = (...lowered) => {
      thread = newThread(...lowered);
      return thread;
    };
    const log = join(folder.path, 'events.sqlite');
    store = await openSqliteEventStore({ file: log, newThread: opening });
    readModels = readModelsAt(file());
    projector = await startProjector({ store, readModels, logger });
    await projector.caughtUp;
    const paymentIds = Array.from({ length: PAYMENTS }, (_, n) => `pay_${n}`);
    await appendLives(store, paymentIds);
    await readModels.waitForRevision(`pay_${PAYMENTS - 1}`, LIFE - 1, HANGS_MS);
    allIndexes = indexes();
  });
  afterAll(async () => {
    await projector.stop();
    await readModels.close();
    await store.close();
    folder.remove();
  });
  beforeEach(() => {
    errors = [];
  });

  const hold = <T>(step: () => Promise<T>) => step();

  test('the comparison of money lets the event loop do other work', async () => {
    let turns = 0;
    const other = setInterval(() => {
      turns += 1;
    }, 0);
    expect(await moneyDifferences(readModels, readModels)).toEqual({ count: 0, named: [] });
    clearInterval(other);
    expect(turns).toBeGreaterThan(0);
  });

  test.each([1, 2, 3])(
    'one whose thread dies while it waits for its call %d leaves the old read models, and no file',
    async (death) => {
      let called = 0;
      const checkpoint = async () => {
        called += 1;
        if (called === death) await thread.end();
        return readModels.checkpoint();
      };
      const dying = rebuild({ store, readModels: { ...readModels, checkpoint }, logger, hold });
      await expect(dying).rejects.toThrow(StoreUnavailable);
      expect([called, existsSync(`${file()}.next`)]).toEqual([death, false]);
      expect(await readModels.getAny('pay_1')).toMatchObject({ revision: LIFE - 1 });
      expect(await projector.rebuild()).toMatchObject({ equal: true, served: true });
    },
  );

  test('gives the same documents with all indexes, says how far it is, and goes on with the log', async () => {
    const reported: number[] = [];
    const result = await projector.rebuild({ onProgress: ({ done }) => void reported.push(done) });
    expect(result).toMatchObject({ events: PAYMENTS * LIFE, equal: true, served: true });
    expect(reported.slice(0, 2)).toEqual([1_000, 2_000]);
    expect(reported.at(-1)).toBe(PAYMENTS * LIFE);
    expect(indexes()).toEqual(allIndexes);
    const position = (await store.end()) ?? '';
    expect(await readModels.checkpoint()).toBe(position);
    const hash = (await store.hashAt(position))?.logHash;
    expect(await readModels.checkpointHash(position)).toBe(hash);
    await appendLives(store, ['pay_new']);
    expect(await readModels.waitForRevision('pay_new', LIFE - 1, HANGS_MS)).toBe(true);
    expect(await readModels.idsAfter(null, PAYMENTS + 9)).toHaveLength(PAYMENTS + 1);
    const page = await readModels.search({ merchantId: 'm_1' }, 100);
    expect(page.documents).toHaveLength(100);
    expect(errors).toEqual([]);
  });

  test('events, and an erasure, that come while the thread fills are in the new read models', async () => {
    const meanwhile = Array.from({ length: 20 }, (_, n) => `pay_meanwhile_${n}`);
    let appended: Promise<unknown> | undefined;
    const erase = async () => {
      const last = (await store.readStream(streamOf('pay_1'))).at(-1);
      return store.append(streamOf('pay_1'), last ?? 'none', [newEvent(personalDataErased())]);
    };
    const onProgress = () => {
      appended ??= appendLives(store, meanwhile).then(erase);
    };
    expect(await projector.rebuild({ onProgress })).toMatchObject({ equal: true, served: true });
    await appended;
    for (const id of meanwhile)
      expect(await readModels.waitForRevision(id, LIFE - 1, HANGS_MS)).toBe(true);
    expect(await readModels.waitForRevision('pay_1', LIFE, HANGS_MS)).toBe(true);
    const { body = '' } = (await readModels.getAny('pay_1')) ?? {};
    expect(JSON.parse(body).personal).toEqual({ erasedAt: expect.any(String) });
    expect(errors).toEqual([]);
  });

  test('an event that cannot be applied parks its payment, with a line in the log of the process', async () => {
    const stream = streamOf('pay_0');
    const last = (await store.readStream(stream)).at(-1);
    // A second create; what is appended after it is applied.
    const second = newEvent(created({ paymentId: 'pay_0' }));
    await store.append(stream, last ?? 'none', [second]);
    await appendLives(store, ['pay_after']);
    await readModels.waitForRevision('pay_after', LIFE - 1, HANGS_MS);
    errors = [];
    const { parked } = await projector.rebuild();
    expect(parked).toMatchObject([{ paymentId: 'pay_0', revision: LIFE }]);
    expect(errors).toEqual(['payment parked: the read models cannot take its event']);
    expect(await readModels.getAny('pay_0')).toMatchObject({ revision: LIFE - 1, parked: true });
  });
});
