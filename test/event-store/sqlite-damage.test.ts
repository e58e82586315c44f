/**
 * One bit of the log's file flips, most often in an index: what it hides is never acted on, it ends no process,
 * and a check of the file names it. gaps §25, ADR-0006.
 */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { judgeBreaks } from '../../audit/breaks.ts';
import { walkLog } from '../../audit/walk-log.ts';
import { startProjector } from '../../projector/compose.ts';
import { hashOf } from '../../shared/event-store/chain.ts';
import {
  StoreFileUnusable,
  StoreUnavailable,
  UnreadableStream,
} from '../../shared/event-store/errors.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { startBudget } from '../../shared/http/request-budget.ts';
import type { ChangeCommand } from '../../shared/payment/commands.ts';
import { streamOf } from '../../shared/payment/events.ts';
import { resultOf } from '../../shared/runtime/jobs.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { capture, refund, voidIt } from '../support/commands.ts';
import { timesOf } from '../support/long-run-share.ts';
import { created, newEvent, timeOf, wholeLife } from '../support/payment-events.ts';
import { paymentLogOver } from '../support/payment-log.ts';
import { type Random, randomOf } from '../support/random.ts';
import { readModelsIn } from '../support/read-models-here.ts';
import { silent } from '../support/silent-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const PAYMENTS = 120;
const PAGE_BYTES = 4096;
const FLIPS = timesOf(100, 20);
const isLong = process.env.TEST_LONG === '1';
const SEED = isLong ? Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31) : 20_261_129;
const CONTEXT = { actor: 'tester', requestId: 'r', correlationId: 'r', causationId: 'r' };
const { signal } = new AbortController();

/** Payments by how many events they have: a command, and what it comes to on a whole stream. */
const KINDS: { events: number; command: ChangeCommand; comesTo: string }[] = [
  { events: 2, command: capture(), comesTo: 'done' },
  { events: 4, command: voidIt(), comesTo: 'refused' },
  // Of 2,000 that were captured 800 are given back.
  { events: 6, command: refund({ amount: 2000 }), comesTo: 'refused' },
];
const kindOf = (n: number) => KINDS[n % KINDS.length] as (typeof KINDS)[number];
const idOf = (n: number): string => `pay_${String(n).padStart(4, '0')}`;

const idFrom = (text: string): string =>
  hashOf(text)
    .slice(0, 32)
    .replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-7$3-8$4-$5');

const whole = temporaryFolder();
const FILES = ['events.sqlite', 'read-models.sqlite'];
let indexPages: number[];

beforeAll(async () => {
  const store = await openSqliteEventStore({ file: join(whole.path, 'events.sqlite') });
  for (let n = 0; n < PAYMENTS; n += 1) {
    const events = wholeLife(idOf(n)).slice(0, kindOf(n).events);
    const recorded = events.map((event, at) => ({
      ...newEvent(event, timeOf(at)),
      // The same bytes in each run, spread over the index as random ids are.
      id: idFrom(`${idOf(n)} ${at}`),
    }));
    await store.append(streamOf(idOf(n)), 'none', recorded);
  }
  const readModels = readModelsIn(whole.path);
  const projector = await startProjector({ store, readModels, logger: silent });
  await projector.caughtUp;
  await projector.stop();
  await readModels.close();
  await store.close();
  const db = new DatabaseSync(join(whole.path, 'events.sqlite'), { readOnly: true });
  const found = db
    .prepare(
      `SELECT pageno FROM dbstat WHERE name LIKE 'sqlite_autoindex_%' ORDER BY pagetype DESC, name`,
    )
    .all();
  indexPages = found.map(({ pageno }) => Number(pageno));
  db.close();
});
afterAll(() => whole.remove());

const damaged = (flip: (bytes: Buffer) => void) => {
  const folder = temporaryFolder();
  for (const name of FILES) copyFileSync(join(whole.path, name), join(folder.path, name));
  const bytes = readFileSync(join(folder.path, 'events.sqlite'));
  flip(bytes);
  writeFileSync(join(folder.path, 'events.sqlite'), bytes);
  return { ...folder, file: join(folder.path, 'events.sqlite') };
};

const flipBit = (random: Random) => (bytes: Buffer) => {
  const page = indexPages[random.between(0, indexPages.length - 1)] ?? 0;
  const inIndex = (page - 1) * PAGE_BYTES + random.between(0, PAGE_BYTES - 1);
  const at = random.chance(0.6) ? inIndex : random.between(0, bytes.length - 1);
  bytes.writeUInt8((bytes[at] ?? 0) ^ (1 << random.between(0, 7)), at);
};

const ofFile = <T>(file: string, read: (db: DatabaseSync) => T): T | undefined => {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return read(db);
  } catch {
    return undefined;
  } finally {
    db.close();
  }
};
/** An append may have written a damaged page anew. */
const isSound = (file: string): boolean =>
  ofFile(file, (db) => db.prepare('PRAGMA integrity_check').get()?.integrity_check) === 'ok';
/** Places of the log that two rows have, read past every index. */
const doubled = (file: string): unknown[] =>
  ofFile(file, (db) => [
    ...db
      .prepare(
        `SELECT stream_id FROM events NOT INDEXED GROUP BY stream_id, revision HAVING count(*) > 1`,
      )
      .all(),
    ...db.prepare('SELECT name FROM streams NOT INDEXED GROUP BY name HAVING count(*) > 1').all(),
  ]) ?? [];

type Store = Awaited<ReturnType<typeof openSqliteEventStore>>;
type ReadModels = ReturnType<typeof readModelsIn>;

/** What a command on each payment came to, where that is not what it comes to on a whole log. */
const actOnAll = async (store: Store, readModels: ReadModels): Promise<Map<string, string>> => {
  const log = paymentLogOver(store, { readModels });
  const others = new Map<string, string>();
  for (let n = 0; n < PAYMENTS; n += 1) {
    const { command, comesTo } = kindOf(n);
    const came = await log.execute(idOf(n), command, CONTEXT, startBudget(1_000)).then(
      ({ kind }) => kind,
      (error: unknown) => {
        const isOfPort = error instanceof StoreUnavailable || error instanceof UnreadableStream;
        return isOfPort ? 'an error' : String(error);
      },
    );
    if (came !== comesTo) others.set(idOf(n), came);
  }
  return others;
};

/** Appends to every stream that a fault names, to all where one cannot be named; those that took it. */
const takenAfter = async (store: Store, streams: readonly string[]): Promise<string[]> => {
  const taken: string[] = [];
  for (const stream of streams.includes('') ? ['payment-new'] : streams)
    await store.append(stream, 'none', [newEvent(created())]).then(
      () => taken.push(stream),
      (error: unknown) => expect(error).toBeInstanceOf(StoreFileUnusable),
    );
  return taken;
};

type Outcome = 'harmless' | 'named' | 'refused';

/** What became of one flipped bit, or in words what went wrong. */
const meet = async (flip: (bytes: Buffer) => void): Promise<Outcome | { wrong: string }> => {
  using image = damaged(flip);
  // A flip may itself give a row the place of another.
  const doubledByIt = doubled(image.file);
  let ended: string | undefined;
  const onFatal = ({ message }: Error): void => {
    ended = message;
  };
  let store: Store;
  try {
    store = await openSqliteEventStore({ file: image.file, onFatal });
  } catch (error) {
    return error instanceof StoreFileUnusable ? 'refused' : { wrong: String(error) };
  }
  const readModels = readModelsIn(image.path);
  try {
    const others = await actOnAll(store, readModels);
    const faults = (await store.stored.checkFile?.(signal)) ?? [];
    const walk = walkLog({ stored: store.stored, end: await store.end(), signal });
    const { count } = judgeBreaks(
      (await resultOf(walk))?.breaks ?? { count: 1, kept: [], acknowledgements: [] },
      faults,
    );
    const taken = await takenAfter(
      store,
      faults.map(({ stream }) => stream),
    );
    const acted = [...others].filter(([, came]) => came !== 'an error');
    const wrong = [
      ...(ended === undefined ? [] : [`the process ended: ${ended}`]),
      ...(acted.length === 0 ? [] : [`acted on what was hidden: ${acted.join('; ')}`]),
      ...(count === 0 && !isSound(image.file) ? ['intact, and it is not'] : []),
      ...taken.map((stream) => `${stream} took an event`),
    ];
    if (wrong.length > 0) return { wrong: wrong.join('; ') };
    return count === 0 ? 'harmless' : 'named';
  } finally {
    await readModels.close();
    await store.close();
    expect(doubled(image.file)).toEqual(doubledByIt);
  }
};

test('of appends that share a transaction those alone fail that need a damaged page', async () => {
  using image = damaged((bytes) => {
    const [page = 0] = indexPages;
    bytes.fill(0, (page - 1) * PAGE_BYTES, page * PAGE_BYTES);
  });
  const ends: Error[] = [];
  const onFatal = (error: Error): void => void ends.push(error);
  const metrics = createMetrics();
  const store = await openSqliteEventStore({ file: image.file, onFatal, metrics });
  const outcomes = await Promise.allSettled(
    Array.from({ length: 40 }, (_, n) => {
      const event = { ...newEvent(created()), id: idFrom(`more ${n}`) };
      return store.append(`payment-more_${n}`, 'none', [event]);
    }),
  );
  const errors = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  for (const error of errors) expect(error).toBeInstanceOf(StoreFileUnusable);
  expect(errors.length).toBeGreaterThan(0);
  expect(errors.length).toBeLessThan(outcomes.length);
  const [commits] = (await metrics.appendBatches.get()).values;
  expect([ends, commits?.value]).toEqual([[], outcomes.length - errors.length]);
  await store.close();
});

test(`${FLIPS} flipped bits: each is harmless, named, or refused at the start`, async () => {
  const random = randomOf(SEED);
  const counts = { harmless: 0, named: 0, refused: 0 };
  const wrong: string[] = [];
  for (let n = 0; n < FLIPS; n += 1) {
    const outcome = await meet(flipBit(random));
    if (typeof outcome === 'string') counts[outcome] += 1;
    else wrong.push(`flip ${n}: ${outcome.wrong}`);
  }
  process.stderr.write(`flipped bits: seed ${SEED}, ${JSON.stringify(counts)}\n`);
  expect(wrong).toEqual([]);
  expect(Math.min(counts.harmless, counts.named)).toBeGreaterThan(0);
}, 600_000);
