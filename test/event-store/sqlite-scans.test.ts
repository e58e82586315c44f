/** ADR-0185: a verification and an export of a SQLite log run beside the event loop, and end with the store. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { exportTexts } from '../../audit/log.ts';
import { verifyLog } from '../../audit/verification.ts';
import { newThread } from '../../embedded/jobs.ts';
import type { KeyStore } from '../../personal-data/port.ts';
import { verifyKeysOf } from '../../personal-data/verify-keys.ts';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../shared/event-store/sqlite/event-store.ts';
import { type JobThread, type NewThread, resultOf } from '../../shared/runtime/jobs.ts';
import { untilBesideTheLoop } from '../support/beside-the-loop.ts';
import { appendLives } from '../support/many-payments.ts';
import { appendPayment, wholeLife } from '../support/payment-events.ts';
import { noReadModels } from '../support/tampering.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const PAYMENTS = 300;
const EVENTS = 6 * PAYMENTS;

const requested = { from: undefined, fromTime: undefined, toTime: undefined, limit: undefined };
const exportArgs = { requested, only: undefined };

describe('scans of a SQLite log', () => {
  const folder = temporaryFolder();
  const file = join(folder.path, 'events.sqlite');
  let store: SqliteEventStore;
  let thread: JobThread;
  let begun = Promise.withResolvers<void>();
  const opening: NewThread = (...lowered) => {
    thread = newThread(...lowered);
    return {
      ...thread,
      run: (...scan) => {
        begun.resolve();
        return thread.run(...scan);
      },
    };
  };
  beforeAll(async () => {
    store = await openSqliteEventStore({ file, newThread: opening });
    const ids = Array.from({ length: PAYMENTS }, (_, n) => `pay_${n}`);
    await appendLives(store, ids);
  });
  afterAll(async () => {
    await store.close();
    folder.remove();
  });

  /** The check of the file is a process of its own. */
  const verify = (signal = new AbortController().signal) => {
    const { checkFile: _, ...stored } = store.stored;
    const deps = { store: { ...store, stored }, readModels: noReadModels };
    return resultOf(verifyLog(deps, { signal }));
  };
  const exported = (from = store, signal?: AbortSignal) =>
    exportTexts({ store: from, readModels: noReadModels }, exportArgs, signal);
  const linesOf = async (texts: AsyncIterable<string>): Promise<number> => {
    let lines = 0;
    for await (const text of texts) lines += text.split('\n').length - 1;
    return lines;
  };

  test('see every event, ten at once', async () => {
    const five = <T>(scan: () => Promise<T>) => Promise.all(Array.from({ length: 5 }, scan));
    const [walked, lines] = await Promise.all([five(verify), five(() => linesOf(exported()))]);
    const head = { position: String(EVENTS) };
    for (const one of walked)
      expect(one).toMatchObject({ events: EVENTS, head, breaks: { count: 0 } });
    expect(lines).toEqual(Array(5).fill(EVENTS));
  });

  test('take next to nothing of the event loop', async () => {
    await untilBesideTheLoop(() => Promise.all([verify(), linesOf(exported())]));
  });

  test('see what was appended before they began', async () => {
    await appendLives(store, ['pay_late']);
    expect(await verify()).toMatchObject({ events: EVENTS + 6 });
  });

  test('a verification and an export whose thread dies fail, and the next ones have another', async () => {
    for (const scan of [() => verify(), () => linesOf(exported())]) {
      begun = Promise.withResolvers();
      const failed = expect(scan()).rejects.toThrow(StoreUnavailable);
      await begun.promise;
      await thread.end();
      await failed;
      await scan();
    }
  });

  test('a verification, or its look at keys, whose thread dies at any of its calls fails', async () => {
    // No event and no document names the merchant of these: each makes a call.
    await appendPayment(store, 'pay_of_none', wholeLife('pay_of_none').slice(4));
    let [calls, fatal] = [0, 0];
    const call = async <T>(result: T): Promise<T> => {
      calls += 1;
      if (calls === fatal) await thread.end();
      return result;
    };
    const { signal } = new AbortController();
    const readModels = { ...noReadModels, getAny: () => call(undefined) };
    const read: KeyStore['read'] = (ids) => call(new Map(ids.map((id) => [id, 'missing'])));
    const ofMerchant = () => resultOf(verifyLog({ store, readModels }, { only: 'm_1', signal }));
    const scans = [ofMerchant, () => verifyKeysOf(store, { read })(signal)];
    for (const scan of scans) {
      [calls, fatal] = [0, 0];
      await scan();
      const all = calls;
      expect(all).toBeGreaterThan(1);
      for (fatal = 1; fatal <= all; fatal += 1) {
        calls = 0;
        await expect(scan()).rejects.toThrow(StoreUnavailable);
      }
    }
  });

  test('a verification that is stopped has no result, and an export cancelled midway fails', async () => {
    expect(await verify(AbortSignal.abort())).toBeUndefined();
    const leaving = new AbortController();
    const texts = exported(store, leaving.signal);
    await texts.next();
    leaving.abort();
    await expect(linesOf(texts)).rejects.toThrow('the export was aborted');
  });

  test('one that its reader left, or that is under way, is over when the store has closed', async () => {
    const other = join(folder.path, 'closing.sqlite');
    const closing = await openSqliteEventStore({ file: other, newThread });
    // More than a scan may be ahead of its reader.
    const ids = Array.from({ length: 200 }, (_, n) => `pay_${n}`);
    await appendLives(closing, ids);
    const texts = exported(closing);
    expect((await texts.next()).value).toMatch(/^{"position":"1"/);
    await closing.close();
    // The last connection moved the write-ahead log into the file.
    expect(existsSync(`${other}-wal`)).toBe(false);
    // What was read ahead still arrives, then the scan ends.
    await expect(linesOf(texts)).rejects.toThrow(StoreUnavailable);
  });
});

const SHARED = new URL('../../shared/', import.meta.url);

/** Every module that `entry` loads, itself with them; imports of types alone are gone when it runs. */
const loadedBy = (entry: URL, found = new Set<string>()): Set<string> => {
  if (found.has(entry.href)) return found;
  found.add(entry.href);
  const source = readFileSync(entry, 'utf8');
  for (const [, name = ''] of source.matchAll(
    /^(?:import|\}|export)(?! type)[^;]*? from '([^']+)';/gm,
  )) {
    if (name.startsWith('.')) loadedBy(new URL(name, entry), found);
    else found.add(name);
  }
  return found;
};

test('the thread of the log loads no package', () => {
  const loaded = [...loadedBy(new URL('event-store/sqlite/worker.ts', SHARED))];
  expect(loaded.length).toBeGreaterThan(1);
  expect(loaded.filter((name) => !/^(file|node):/.test(name))).toEqual([]);
});
