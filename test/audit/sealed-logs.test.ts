/** One proof over the whole log on EventStoreDB; seals.test.ts has that of SQLite. */
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readHeadFile, readSealingKey } from '../../audit/seals/key.ts';
import { publicKeyOf } from '../../audit/seals/seals.ts';
import { verifyFile } from '../../cli/export-file.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { SEALS_STREAM } from '../../shared/payment/seal-events.ts';
import { LogMisfit } from '../../shared/subscription/errors.ts';
import {
  type Change,
  type Following,
  ofAnotherMerchant,
  openSealedLog,
  type SealedLog,
  without,
  withoutSeals,
} from '../support/sealed-logs.ts';
import { exportLog, verifyOf } from '../support/tampering.ts';
import { until } from '../support/until.ts';

const payments = (from: number, count: number): string[] =>
  Array.from({ length: count }, (_, n) => `pay_${String(from + n).padStart(5, '0')}`);

const logs = new Set<SealedLog>();
const running = new Set<Following>();
const opened = async (): Promise<SealedLog> => {
  const log = await openSealedLog();
  logs.add(log);
  return log;
};
afterEach(async () => {
  for (const one of running) await one.stop();
  running.clear();
  for (const log of logs) await log.close();
  logs.clear();
});

/** A store that notes after which positions pages of it are read, and it is followed. */
const noting = (store: EventStore) => {
  const afters: (string | null)[] = [];
  const readAll: EventStore['readAll'] = (after, ...rest) => {
    afters.push(after);
    return store.readAll(after, ...rest);
  };
  const subscribe: EventStore['subscribe'] = (after, signal) => {
    afters.push(after);
    return store.subscribe(after, signal);
  };
  return { store: { ...store, readAll, subscribe }, afters };
};

describe('a sealed log', () => {
  let log: SealedLog;
  beforeEach(async () => {
    log = await opened();
  });
  const follow = async (store?: EventStore): Promise<Following> => {
    const following = await log.follow(store);
    running.add(following);
    await following.caughtUp();
    return following;
  };
  const kill = async (following: Following): Promise<void> => {
    running.delete(following);
    await following.die();
  };
  const key = async () => publicKeyOf(await readSealingKey(log.keyFile));
  const headOf = () => readHeadFile({ keyFile: log.keyFile });
  const verify = async (keptHeads = () => undefined as ReturnType<typeof headOf>) =>
    verifyOf(log.store(), log.readModels(), undefined, undefined, keptHeads, await key());
  const sealedPositions = async () =>
    (await log.store().readStream(SEALS_STREAM)).map(({ event }) =>
      event.type === 'LogSealed' ? event.data.position : '',
    );
  const positionAt = async (nth: number) =>
    (await log.store().readAll(null, nth)).at(-1)?.position ?? '';
  const exported = (out: string) =>
    exportLog({ store: log.store(), folder: log.folder }, join(log.folder, out));

  test('what was sealed verifies up to the last seal, and so does an export of it by the key alone', async () => {
    await log.fill(payments(0, 5));
    await log.followAndSeal();
    await log.fill(payments(5, 1));
    const verified = await verify();
    expect(verified).toMatchObject({
      finding: 'INTACT',
      guarantee: 'sealed',
      events: 37,
      head: { logHash: expect.stringMatching(/^\w{64}$/) },
      sealed: { seals: 1, position: await positionAt(30), eventsAfter: 6 },
    });
    const { out, manifest } = await exported('log.jsonl');
    expect(manifest.head?.logHash).toBe(verified.head?.logHash);
    expect(await verifyFile(out, undefined, await key())).toMatchObject({
      ok: true,
      sealed: { seals: 1, position: await positionAt(30) },
    });
    const other = Buffer.alloc(32, 7).toString('base64url');
    expect(await verifyFile(out, undefined, other)).toMatchObject({
      ok: false,
      broken: { line: 31, stream: SEALS_STREAM, reason: /^it was sealed with another key/ },
    });
  });

  test.each<[string, Change, seal: number, missingPayments: string[]]>([
    ['with every hash anew', ofAnotherMerchant('pay_00003'), 0, []],
    ['without a whole payment, which is named', without('pay_00003'), 0, ['pay_00003']],
    ['without a seal before another', withoutSeals((revision) => revision === 0), 1, []],
  ])('a log %s: broken at its next seal', async (_name, change, seal, missingPayments) => {
    await log.fill(payments(0, 8));
    await log.followAndSeal();
    await log.fill(payments(8, 2));
    await log.followAndSeal();
    const position = (await sealedPositions())[seal];
    await log.rewrite(change);
    const reason = `the log is not the one that was sealed at position ${position}`;
    expect(await verify()).toMatchObject({
      finding: 'BROKEN',
      broken: { stream: SEALS_STREAM, reason },
      missingPayments,
    });
    const { breaks } = await exported('rewritten.jsonl');
    expect(breaks.named[0]).toMatchObject({ stream: SEALS_STREAM });
  });

  test('the last seal, taken out, is missed by the kept head, and all of them at the start', async () => {
    await log.fill(payments(0, 2));
    await log.followAndSeal();
    await log.fill(payments(2, 2));
    await log.followAndSeal();
    const [, second] = await sealedPositions();
    const kept = headOf();
    await log.rewrite(withoutSeals((revision) => revision === 1));
    expect(await verify()).toMatchObject({ finding: 'INTACT', sealed: { seals: 1 } });
    expect(await verify(() => kept)).toMatchObject({
      finding: 'BROKEN',
      broken: { position: second, reason: /^its seal is not in the log/ },
    });
    await log.rewrite(withoutSeals(() => true));
    await expect(log.follow()).rejects.toThrow(LogMisfit);
  });

  test('a log that was changed after its last seal is not the one that was kept', async () => {
    await log.fill(payments(0, 5));
    const following = await follow();
    await following.seal();
    await log.fill(payments(5, 3));
    const end = await log.store().end();
    await until('the head is kept', () => headOf()?.last?.position === end);
    await kill(following);
    expect(await verify(headOf)).toMatchObject({ finding: 'INTACT', sealed: { seals: 1 } });
    await log.rewrite(ofAnotherMerchant('pay_00006'));
    expect(await verify()).toMatchObject({ finding: 'INTACT' });
    expect(await verify(headOf)).toMatchObject({
      finding: 'BROKEN',
      broken: { position: end, reason: /^its log hash is not the one that was kept beside/ },
    });
    await log.rewrite(without('pay_00007'));
    const cut = { position: end, reason: /^the log ends before the head that was kept beside/ };
    expect(await verify(headOf)).toMatchObject({ finding: 'BROKEN', broken: cut });
  });

  test('who takes over goes on from the last seal, and reads nothing before it again', async () => {
    await log.fill(payments(0, 5));
    const first = await follow();
    await first.seal();
    await log.fill(payments(5, 2));
    await first.caughtUp();
    const [sealed = ''] = await sealedPositions();
    const { store, afters } = noting(log.store());
    const second = await log.follow(store);
    running.add(second);
    await until('standing by', async () => second.standingBy());
    await kill(first);
    await second.caughtUp();
    await second.seal();
    const places = [
      null,
      ...(await log.store().readAll(null, 100)).map(({ position }) => position),
    ];
    expect(afters.filter((after) => places.indexOf(after) < places.indexOf(sealed))).toEqual([]);
    expect(afters).toContain(sealed);
    expect(await verify()).toMatchObject({
      finding: 'INTACT',
      sealed: { seals: 2, eventsAfter: 0 },
    });
  });

  test('read models that are filled anew go on to the seals that the log has', async () => {
    await log.fill(payments(0, 5));
    await log.followAndSeal();
    await log.fill(payments(5, 2));
    await log.forgetReadModels();
    await log.followAndSeal();
    expect(await verify()).toMatchObject({ finding: 'INTACT', sealed: { seals: 2 } });
  });
});

test('a projector that stands by seals nothing', async () => {
  const log = await opened();
  await log.fill(payments(0, 3));
  const first = await log.follow();
  await first.caughtUp();
  const second = await log.follow();
  running.add(first).add(second);
  await until('standing by', async () => second.standingBy());
  await second.seal();
  expect(await log.store().lastRevision(SEALS_STREAM)).toBeNull();
  await first.stop();
  await second.caughtUp();
  await log.fill(payments(3, 1));
  await second.caughtUp();
  await second.stop();
  expect(await log.store().lastRevision(SEALS_STREAM)).toBe(1);
});
