/** Changes of the key that seals the log: who may trust whom, and what a crash leaves behind. */

import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { headFileOf, nextFileOf } from '../../audit/seals/key.ts';
import { openSealer } from '../../audit/seals/open.ts';
import { rotateSealingKey } from '../../audit/seals/rotate.ts';
import { makeRotation, makeSeal, publicKeyOf } from '../../audit/seals/seals.ts';
import { appendSeal, headToSeal, sealsOf } from '../../audit/seals/stored-seals.ts';
import { newThread } from '../../embedded/jobs.ts';
import { logIdOf } from '../../shared/event-store/chain.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { appendLife } from '../support/many-payments.ts';
import { silent } from '../support/silent-log.ts';
import {
  type LogUnderTest,
  openFilledLog,
  openRows,
  rewritten,
  verifyWhole,
} from '../support/tampering.ts';

let log: LogUnderTest;
let store: EventStore;
let keyFile: string;

beforeEach(async () => {
  log = await openFilledLog();
  store = log.store;
  keyFile = join(log.folder, 'elsewhere.pem');
});
afterEach(async () => {
  await store.close();
  await log.close();
});

/** A start and a stop of the service, as far as seals go. */
const startAndStop = async (logger = silent): Promise<void> => {
  const config = { seals: { keyFile, eventsMax: 10_000, everyMs: 3_600_000 } };
  const fileOf = (name: string) => join(log.folder, name);
  await (await openSealer({ config, store, fileOf, log: logger })).stop();
};
const add = (paymentId: string): Promise<void> => appendLife(store, paymentId);
const place = () => ({ keyFile, keepsHead: true });
const ownKey = () => createPrivateKey(readFileSync(keyFile, 'utf8'));
const ownPublicKey = (): string => publicKeyOf(ownKey());
const types = async () => (await sealsOf(store)).map(({ event }) => event.type);
const verifyFrom = (publicKey: string) => verifyWhole(store, undefined, undefined, publicKey);

/** Appends a seal that a writer of the log makes with `key`. */
const forge = async (
  make: (head: Parameters<typeof makeSeal>[1]) => Parameters<typeof appendSeal>[2],
) => {
  const head = await headToSeal(store, await logIdOf(store));
  if (head === undefined) throw new Error('an empty log');
  await appendSeal(store, (await sealsOf(store)).at(-1), make(head), 'forger');
};
const strange = generateKeyPairSync('ed25519').privateKey;

test('a key that others can read is warned of at the start, and one that was just made is not', async () => {
  const warnings: string[] = [];
  const logger = { ...silent, warn: (_fields: object, text: string) => warnings.push(text) };
  await startAndStop(logger);
  expect(warnings).toEqual([]);
  chmodSync(keyFile, 0o644);
  await startAndStop(logger);
  expect(warnings).toEqual([
    'SEALING_KEY_FILE names a file that others can read (mode 0644); it must be 0600: a reader of it can forge the seals',
  ]);
});

describe('a new sealing key', () => {
  test('seals from its rotation on; it is reached from every earlier key, and reaches every earlier seal', async () => {
    await startAndStop();
    const old = ownPublicKey();
    const rotated = await rotateSealingKey(store, place());
    expect(ownPublicKey()).not.toBe(old);
    expect(existsSync(nextFileOf(keyFile))).toBe(false);
    await add('pay_new');
    await startAndStop();
    expect(await types()).toEqual(['LogSealed', 'SealingKeyRotated', 'LogSealed']);
    expect((await sealsOf(store)).at(-1)?.event.data).toMatchObject({ keyId: rotated.keyId });
    expect(JSON.parse(readFileSync(headFileOf({ keyFile }), 'utf8'))).toMatchObject({
      position: '44',
    });

    const second = ownPublicKey();
    await rotateSealingKey(store, place());
    await add('pay_b');
    await startAndStop();
    for (const key of [old, second, ownPublicKey()])
      expect(await verifyFrom(key)).toMatchObject({
        ok: true,
        sealed: { seals: 5, eventsAfter: 0 },
      });
    expect(await verifyFrom(publicKeyOf(strange))).toMatchObject({
      finding: 'BROKEN',
      broken: {
        position: '37',
        reason: expect.stringMatching(
          /^it was sealed with another key .* no change of the key leads/,
        ),
      },
    });
  });

  test('that follows no seal at all is found by the old one', async () => {
    writeFileSync(keyFile, strange.export({ format: 'pem', type: 'pkcs8' }));
    await rotateSealingKey(store, place());
    await startAndStop();
    expect(await verifyFrom(publicKeyOf(strange))).toMatchObject({
      ok: true,
      sealed: { seals: 1 },
    });
  });

  test('of another key than the trusted one is a break, and no start', async () => {
    await startAndStop();
    const evil = generateKeyPairSync('ed25519').privateKey;
    await forge((head) => ({ type: 'SealingKeyRotated', data: makeRotation(strange, evil, head) }));
    await forge((head) => ({ type: 'LogSealed', data: makeSeal(evil, head) }));
    expect(await verifyFrom(ownPublicKey())).toMatchObject({
      finding: 'BROKEN',
      broken: { position: '38', reason: expect.stringMatching(/^it was sealed with another key/) },
    });
    const refused =
      /^the change of the key in the event log, at position 38, does not fit: it was sealed with another key/;
    await expect(startAndStop()).rejects.toThrow(refused);
    writeFileSync(keyFile, evil.export({ format: 'pem', type: 'pkcs8' }));
    rmSync(headFileOf({ keyFile }));
    await expect(startAndStop()).rejects.toThrow(refused);
  });

  test('seals of the old key after its rotation are a break', async () => {
    await startAndStop();
    const old = ownKey();
    await rotateSealingKey(store, place());
    await forge((head) => ({ type: 'LogSealed', data: makeSeal(old, head) }));
    expect(await verifyFrom(publicKeyOf(old))).toMatchObject({ broken: { position: '39' } });
    await expect(startAndStop()).rejects.toThrow(/the last seal of the event log, at position 39/);
  });

  test('the old key put back is refused at the start', async () => {
    await startAndStop();
    const kept = join(log.folder, 'kept.pem');
    copyFileSync(keyFile, kept);
    await rotateSealingKey(store, place());
    copyFileSync(kept, keyFile);
    await expect(startAndStop()).rejects.toThrow(/at position 38, .* with another key/);
  });

  test('protects what was before it from a thief of the old key', async () => {
    await startAndStop();
    const old = ownKey();
    await rotateSealingKey(store, place());
    await store.close();
    const rows = openRows(log.file);
    const other = (text: string) => text.replace('"merchantId":"m_0"', '"merchantId":"m_9"');
    rows.write(rewritten(rows.rows, 0, other));
    const sealed = rows.rows.findIndex(({ text }) => text.includes('"LogSealed"'));
    rows.close();
    store = await openSqliteEventStore({ file: log.file, newThread });
    // A seal of the rewritten log by the old key, in the place of the true one.
    const logHash = (await store.hashAt('36'))?.logHash ?? '';
    const seal = makeSeal(old, { log: await logIdOf(store), position: '36', logHash });
    await store.close();
    const again = openRows(log.file);
    const forged = (text: string) => JSON.stringify({ ...JSON.parse(text), data: seal });
    again.write(rewritten(again.rows, sealed, forged));
    again.close();
    rmSync(headFileOf({ keyFile }));
    store = await openSqliteEventStore({ file: log.file, newThread });
    await expect(startAndStop()).rejects.toThrow(
      /the change of the key in the event log, at position 38, does not fit: the log is not the one/,
    );
  });
});

describe('a rotation that is broken off', () => {
  /** The state before the last rename: the log names the next key, the file holds the old one. */
  const beforeTheRename = async (): Promise<void> => {
    const old = readFileSync(keyFile);
    await rotateSealingKey(store, place());
    renameSync(keyFile, nextFileOf(keyFile));
    writeFileSync(keyFile, old, { mode: 0o600 });
  };

  test('before it was recorded, leaves the old key, at a start and at the next rotation', async () => {
    await startAndStop();
    const old = ownPublicKey();
    const lost = strange.export({ format: 'pem', type: 'pkcs8' });
    writeFileSync(nextFileOf(keyFile), lost);
    await startAndStop();
    expect(ownPublicKey()).toBe(old);
    await rotateSealingKey(store, place());
    await startAndStop();
    expect([publicKeyOf(strange), old]).not.toContain(ownPublicKey());
    expect(await verifyFrom(old)).toMatchObject({ ok: true });
  });

  test('after it was recorded, is finished by the next start', async () => {
    await startAndStop();
    await beforeTheRename();
    await add('pay_new');
    await startAndStop();
    expect(existsSync(nextFileOf(keyFile))).toBe(false);
    expect(await types()).toEqual(['LogSealed', 'SealingKeyRotated', 'LogSealed']);
    expect(await verifyFrom(ownPublicKey())).toMatchObject({ ok: true });
  });

  test('after it was recorded, is finished by the next rotation, which makes no other key', async () => {
    await startAndStop();
    await beforeTheRename();
    const rotated = await rotateSealingKey(store, place());
    expect(rotated).toEqual({ keyId: expect.stringMatching(/^\w{16}$/) });
    expect(await types()).toEqual(['LogSealed', 'SealingKeyRotated']);
    await startAndStop();
  });

  test('by a log that takes no event, changes nothing', async () => {
    await startAndStop();
    const old = ownPublicKey();
    const append = () =>
      Promise.reject(new Error(existsSync(nextFileOf(keyFile)) ? 'full' : 'no next key'));
    await expect(rotateSealingKey({ ...store, append }, place())).rejects.toThrow('full');
    await startAndStop();
    expect(ownPublicKey()).toBe(old);
  });
});
