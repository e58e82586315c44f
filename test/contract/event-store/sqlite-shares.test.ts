/** ADR-0185: the verification of several threads, each for its share, finds what that of one finds. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { hashOf } from '../../../shared/event-store/chain.ts';
import { scanShares } from '../../../shared/event-store/scan-log.ts';
import { takes } from '../../../shared/event-store/shares.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../../shared/event-store/sqlite/event-store.ts';
import { verifyInShares } from '../../../shared/event-store/verify-in-shares.ts';
import {
  type SealedWalked,
  VERIFY_SCAN,
  type VerifyArgs,
} from '../../../shared/event-store/verify-scan.ts';
import { SEALS_STREAM } from '../../../shared/payment/seals-stream.ts';
import { newPaymentId } from '../../../shared/runtime/ids.ts';
import { resultOf } from '../../../shared/runtime/scan.ts';
import { timesOf } from '../../support/long-run-share.ts';
import { appendLives } from '../../support/many-payments.ts';
import { openRows, type Row } from '../../support/tampering.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const PAYMENTS = 4;
const EVENTS = 6 * PAYMENTS;
const SHARES = 2;
/** Every third event is of each of the streams in turn, at each of their revisions. */
const STEP = timesOf(1, 3);

const streams = Array.from({ length: 3000 }, () => `payment-${newPaymentId()}`);

test.each([1, 2, 3, 4])('of %i shares every stream is of exactly one, and they are alike', (of) => {
  const shares = Array.from({ length: of }, (_, index) => takes({ index, of }));
  const taken = streams.map((stream) => shares.map((isOwn) => isOwn(stream)));
  expect(taken.filter((one) => one.filter(Boolean).length !== 1)).toEqual([]);
  for (const index of shares.keys()) {
    const own = taken.filter((one) => one[index]).length;
    expect(Math.abs(own - streams.length / of)).toBeLessThan(streams.length / 10);
  }
  expect(shares.map((isOwn) => isOwn(SEALS_STREAM)).indexOf(true)).toBe(0);
});

describe('the verification in shares', () => {
  const folder = temporaryFolder();
  const file = join(folder.path, 'events.sqlite');
  let store: SqliteEventStore;
  let rows: ReturnType<typeof openRows>;
  beforeAll(async () => {
    store = await openSqliteEventStore({ file });
    await appendLives(
      store,
      Array.from({ length: PAYMENTS }, (_, n) => `pay_${n}`),
    );
    rows = openRows(file);
  });
  afterAll(async () => {
    rows.close();
    await store.close();
    folder.remove();
  });

  const order = (end: string | null) => {
    const args: VerifyArgs = { end, seals: { log: 'log' } };
    return { module: VERIFY_SCAN, args };
  };
  const verified = async (of: number) =>
    resultOf(verifyInShares<SealedWalked>(store, order(await store.end()), of));

  test('takes part in every thread, and comes to what one alone comes to', async () => {
    const streams = Array.from({ length: PAYMENTS }, (_, n) => `payment-pay_${n}`);
    const own = (index: number) => streams.filter(takes({ index, of: SHARES })).length;
    // Else the cases below would prove nothing.
    expect(Math.max(...[0, 1].map(own))).toBeLessThan(PAYMENTS - 1);
    const alone = await verified(1);
    expect(alone).toMatchObject({ events: EVENTS, last: { position: String(EVENTS) } });
    expect(await verified(SHARES)).toEqual(alone);
  });

  const rehashed = (row: Row, text: string): Row => ({ ...row, text, hash: hashOf(text) });
  const FORGERIES: [string, (row: Row, next: Row) => Row[]][] = [
    ['a changed text', (row, next) => [{ ...row, text: row.text.replace('test', 'rest') }, next]],
    ['a text of its own hash', (row, next) => [rehashed(row, `${row.text} `), next]],
    ['a missing row', (_, next) => [next]],
    ['another log hash', (row, next) => [{ ...row, log_hash: hashOf(row.log_hash) }, next]],
    ['another stream', (row, next) => [{ ...row, stream_id: row.stream_id + 100 }, next]],
    [
      'two rows in each other’s place',
      (row, next) => [
        { ...next, position: row.position },
        { ...row, position: next.position },
      ],
    ],
  ];
  test.each(FORGERIES)('finds the same first break for %s, wherever it is', async (_, forged) => {
    const names = [...rows.streams, ...rows.streams.map((one) => ({ ...one, id: one.id + 100 }))];
    for (let at = 0; at + 1 < EVENTS; at += STEP) {
      const [row, next] = rows.rows.slice(at, at + 2) as [Row, Row];
      const changed = [...rows.rows.slice(0, at), ...forged(row, next), ...rows.rows.slice(at + 2)];
      rows.write(
        changed,
        names.map(({ id, name }) => ({ id, name: id > 100 ? `${name}x` : name })),
      );
      const alone = await verified(1);
      expect(alone?.broken).toBeDefined();
      expect(await verified(SHARES)).toEqual(alone);
    }
    rows.restore();
  });

  test('a break is met by the thread whose event it is, before any reader goes on alone', async () => {
    const end = await store.end();
    for (const row of rows.rows.filter((_, at) => at % STEP === 0)) {
      rows.write(rows.rows.map((one) => (one === row ? rehashed(row, `${row.text} `) : one)));
      const shares = scanShares<unknown, SealedWalked>(store, SHARES, (share) => {
        const { args, module } = order(end);
        return { module, args: { ...args, share } };
      });
      const ended = await resultOf(shares);
      const positions = ended.map(({ broken }) => broken?.position);
      expect(positions).toContain(String(row.position));
    }
    rows.restore();
  });

  test('one that is stopped has no result', async () => {
    await appendLives(
      store,
      Array.from({ length: 500 }, (_, n) => `pay_late_${n}`),
    );
    const stopped = { ...order(await store.end()), signal: AbortSignal.abort() };
    expect(await resultOf(verifyInShares<SealedWalked>(store, stopped, SHARES))).toBeUndefined();
  });
});
