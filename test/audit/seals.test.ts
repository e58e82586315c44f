/**
 * Seals of the log: when they are made, which changes of a log with every hash right they find, and changes
 * of the key: who may trust whom, and what a crash leaves behind.
 */
import { execFileSync } from 'node:child_process';
import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { headFileOf, nextFileOf, SealFileRefused } from '../../audit/seals/key.ts';
import { type OpenedSealer, openSealer } from '../../audit/seals/open.ts';
import { rotateSealingKey } from '../../audit/seals/rotate.ts';
import { makeRotation, makeSeal, publicKeyOf } from '../../audit/seals/seals.ts';
import { appendSeal, headToSeal, sealsOf } from '../../audit/seals/stored-seals.ts';
import { verifyFile } from '../../cli/export-file.ts';
import { logIdOf } from '../../shared/event-store/chain.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { SEALS_STREAM } from '../../shared/payment/seal-events.ts';
import { LogMisfit } from '../../shared/subscription/errors.ts';
import { appendLife } from '../support/many-payments.ts';
import { keptThread } from '../support/once/kept-threads.ts';
import { silent } from '../support/silent-log.ts';
import {
  exportLog,
  type LogUnderTest,
  openFilledLog,
  openRows,
  type Rows,
  rewritten,
  verifyWhole,
} from '../support/tampering.ts';
import { until } from '../support/until.ts';

let log: LogUnderTest;
let store: EventStore;
let keyFile: string;
const running = new Set<OpenedSealer>();

beforeEach(async () => {
  log = await openFilledLog();
  store = log.store;
  keyFile = join(log.folder, 'elsewhere.pem');
});
afterEach(async () => {
  for (const sealer of running) await sealer.stop();
  running.clear();
  await store.close();
  await log.close();
});

const open = async (
  seals: { eventsMax?: number; everyMs?: number; headFile?: string } = {},
  own = { store, logger: silent },
) => {
  const config = { seals: { keyFile, eventsMax: 10_000, everyMs: 3_600_000, ...seals } };
  const fileOf = (name: string) => join(log.folder, name);
  const sealer = await openSealer({ config, store: own.store, fileOf, log: own.logger });
  running.add(sealer);
  return sealer;
};
const stop = async (sealer: OpenedSealer): Promise<void> => {
  running.delete(sealer);
  await sealer.stop();
};
/** A start and a stop of the service, as far as seals go. */
const startAndStop = async (logger = silent): Promise<void> =>
  stop(await open({}, { store, logger }));

const seals = async () => (await store.readStream(SEALS_STREAM)).map(({ event }) => event.data);
const add = (paymentId: string): Promise<void> => appendLife(store, paymentId);

/** Changes the rows of the stopped service's log, and opens it again. */
const change = async (how: (rows: Rows) => Rows['rows']): Promise<void> => {
  await store.close();
  const rows = openRows(log.file);
  rows.write(how(rows));
  rows.close();
  store = await openSqliteEventStore({ file: log.file, newThread: keptThread });
};
const streamOf = (rows: Rows, id: number) => rows.streams.find((one) => one.id === id)?.name;

describe('seals', () => {
  test('are made at a stop where anything was written, each of what lies before it', async () => {
    await startAndStop();
    expect(await seals()).toMatchObject([
      { position: '36', logHash: (await store.hashAt('36'))?.logHash },
    ]);
    await startAndStop();
    expect(await seals()).toHaveLength(1);
    await add('pay_new');
    // A verification counts them, with what follows the last one.
    expect(await verifyWhole(store)).toMatchObject({
      ok: true,
      sealed: { seals: 1, position: '36', eventsAfter: 6 },
    });
    await startAndStop();
    expect(await seals()).toMatchObject([{ position: '36' }, { position: '43' }]);
    expect(JSON.parse(readFileSync(headFileOf({ keyFile }), 'utf8'))).toMatchObject({
      position: '43',
    });
  });

  test('are made after SEAL_EVENTS_MAX events, and after SEAL_INTERVAL_MS where anything was written', async () => {
    await startAndStop();
    const byCount = await open({ eventsMax: 6 });
    await add('pay_a');
    await until('sealed', async () => (await seals()).length === 2);
    // Each says after how many events the next one is due, also once the setting has changed.
    expect(await seals()).toMatchObject([{ eventsMax: 10_000 }, { eventsMax: 6 }]);
    await stop(byCount);
    await open({ everyMs: 100 });
    await add('pay_b');
    await until('sealed', async () => (await seals()).length === 3);
    expect((await seals()).at(-1)).toMatchObject({ position: '50' });
  });

  test('a log written anew with every hash right, seals kept, is refused, and verify finds it', async () => {
    await startAndStop();
    // Another merchant: no sum of the payment shows it.
    const other = (text: string) => text.replace('"merchantId":"m_0"', '"merchantId":"m_9"');
    await change(({ rows }) => rewritten(rows, 0, other));
    await expect(open()).rejects.toThrow(LogMisfit);
    await expect(open()).rejects.toThrow(
      /the last seal of the event log, at position 37, does not fit: the log is not the one that was sealed at position 36; put back/,
    );
    expect(await verifyWhole(store)).toMatchObject({
      finding: 'BROKEN',
      broken: { position: '37', stream: SEALS_STREAM },
    });
  });

  test('a copy of an earlier seal covers nothing, also in an export', async () => {
    await startAndStop();
    await add('pay_new');
    await change(({ rows }) => {
      const seal = rows.at(36) as Rows['rows'][number];
      const previous = `"previousHash":"${seal.hash}"`;
      const text = seal.text
        .replace(/"previousHash":"\w+"/, previous)
        .replace('"revision":0', '"revision":1');
      const copy = { ...seal, position: 44, revision: 1, id: crypto.randomUUID() };
      const own = text.replaceAll(seal.id, copy.id);
      return rewritten([...rows, { ...copy, text: own }], 43, (same) => same);
    });
    const broken = { position: '44', reason: 'it seals nothing after the seal before it' };
    expect(await verifyWhole(store)).toMatchObject({ finding: 'BROKEN', broken });
    const { out } = await exportLog({ ...log, store });
    expect(await verifyFile(out)).toMatchObject({ ok: false, broken: { line: 44, ...broken } });
  });

  test('a log that was cut, or put back from an older copy, is refused until the head file is removed', async () => {
    await startAndStop();
    await add('pay_new');
    await startAndStop();
    await change(({ rows }) => rows.slice(0, 37));
    await expect(open()).rejects.toThrow(/put back from an older copy/);
    rmSync(headFileOf({ keyFile }));
    await add('pay_after');
    await startAndStop();
    expect(await seals()).toHaveLength(2);
  });

  test('a log that was changed or cut after its last seal is refused by the head that is kept', async () => {
    await startAndStop();
    const sealer = await open();
    await add('pay_new');
    const keptAt = () => JSON.parse(readFileSync(headFileOf({ keyFile }), 'utf8')).last?.position;
    await until('the head is kept', () => keptAt() === '43');
    // As where it was killed: what is closed is not sealed.
    await store.close();
    await stop(sealer);
    const other = (text: string) => text.replace(/"merchantId":"m_\d"/, '"merchantId":"m_9"');
    for (const how of [
      ({ rows }: Rows) => rewritten(rows, 37, other),
      ({ rows }: Rows) => rows.slice(0, -2),
    ]) {
      await change(how);
      await expect(open()).rejects.toThrow(
        /is not the one that was kept at position 43, after its last seal/,
      );
    }
  });

  test('with another key, or a file that holds none, the start is refused', async () => {
    await startAndStop();
    rmSync(keyFile);
    await expect(open()).rejects.toThrow(/it was sealed with another key \(\w{16}, not \w{16}\)/);
    writeFileSync(keyFile, 'nothing');
    await expect(open()).rejects.toThrow(/^SEALING_KEY_FILE: \S+ holds no Ed25519 key in PEM/);
    keyFile = join(log.folder, 'no-folder', 'key.pem');
    await expect(open()).rejects.toThrow(
      /^SEALING_KEY_FILE: \S+ cannot be read or made \(ENOENT\)/,
    );
  });
});

test('a head that cannot be written beside the key is one warning until it is written again', async () => {
  const warned: unknown[] = [];
  const logger = { ...silent, warn: (...line: unknown[]) => warned.push(line) };
  let looks = 0;
  const head: EventStore['head'] = (after) => {
    looks += 1;
    return store.head(after);
  };
  const inTheWay = `${headFileOf({ keyFile })}.new`;
  mkdirSync(inTheWay);
  const sealer = await open({}, { store: { ...store, head }, logger });
  await add('pay_a');
  await until('it was said', () => warned.length === 1);
  expect(warned).toMatchObject([
    [{ reason: expect.any(String) }, expect.stringMatching(/^the head of the event log could not/)],
  ]);
  const before = looks;
  await until('it has looked again', () => looks > before + 2);
  expect(warned).toHaveLength(1);
  rmSync(inTheWay, { recursive: true });
  await until('it is kept', async () => (await sealer.overdue()).headSeconds === 0);
  expect(existsSync(headFileOf({ keyFile }))).toBe(true);
  mkdirSync(inTheWay);
  await add('pay_b');
  await until('it was said again', () => warned.length === 2);
  expect((await sealer.overdue()).headSeconds).toBeGreaterThan(0);
  await stop(sealer);
  // The seal is in the log all the same.
  expect(await seals()).toHaveLength(1);
});

test('SEALED_HEAD_FILE holds the head apart from the key, and an older copy of the log is refused by it', async () => {
  mkdirSync(join(log.folder, 'heads'));
  const headFile = join(log.folder, 'heads', 'head.json');
  await stop(await open({ headFile }));
  expect(JSON.parse(readFileSync(headFile, 'utf8'))).toMatchObject({ position: '36' });
  expect(existsSync(headFileOf({ keyFile }))).toBe(false);
  await change((all) =>
    all.rows.filter(({ stream_id }) => streamOf(all, stream_id) !== SEALS_STREAM),
  );
  await expect(open({ headFile })).rejects.toThrow(/remove \S+heads\/head\.json/);
});

describe('SEALED_HEAD_FILE', () => {
  const headFile = () => join(log.folder, 'head');
  const makeKey = async () => {
    await startAndStop();
    rmSync(headFileOf({ keyFile }));
  };
  const NOT_PLAIN = /is a link, a folder, a pipe or a device; name a plain file/;
  /** What is made at the place, or the place that is named in its stead. */
  const PLACES: [what: string, make: (at: string) => unknown, said: RegExp][] = [
    ['a pipe', (at) => execFileSync('mkfifo', [at]), NOT_PLAIN],
    ['a device', () => '/dev/zero', NOT_PLAIN],
    ['a folder', (at) => mkdirSync(at), NOT_PLAIN],
    ['the key itself', () => keyFile, /is the sealing key itself; name a plain file of its own/],
    ['the key under another name', (at) => linkSync(keyFile, at), /is the sealing key itself/],
    ['a link to the key', (at) => symlinkSync(keyFile, at), NOT_PLAIN],
    ['a link that leads nowhere', (at) => symlinkSync('nowhere', at), NOT_PLAIN],
    [
      'another secret',
      (at) => writeFileSync(at, 'a secret'),
      /holds no head of a log; .*; where it is something else, name a plain file of its own/,
    ],
  ];

  test.each(PLACES)(
    'that names %s is refused in one line, and nothing is read or replaced',
    async (_what, make, said) => {
      await makeKey();
      const key = readFileSync(keyFile, 'utf8');
      const named = make(headFile());
      const at = typeof named === 'string' ? named : headFile();
      const before = lstatSync(at);
      const refused = await open({ headFile: at }).catch((error: Error) => error);
      expect(refused).toBeInstanceOf(SealFileRefused);
      const { message } = refused as Error;
      expect(message).toMatch(said);
      expect(message).toMatch(new RegExp(`^SEALED_HEAD_FILE: ${at} `));
      expect(message).not.toMatch(/remove|\n/);
      const { ino, mode } = lstatSync(at);
      expect([ino, mode]).toEqual([before.ino, before.mode]);
      expect(readFileSync(keyFile, 'utf8')).toBe(key);
    },
  );

  test('that becomes a link while the service runs is not replaced, and the head counts as not kept', async () => {
    const warned: string[] = [];
    const logger = { ...silent, warn: (_fields: object, text: string) => warned.push(text) };
    const sealer = await open({ headFile: headFile() }, { store, logger });
    symlinkSync('nowhere', headFile());
    await add('pay_a');
    await until('it is said', () => warned.length > 0);
    expect(lstatSync(headFile()).isSymbolicLink()).toBe(true);
    expect((await sealer.overdue()).headSeconds).toBeGreaterThan(0);
    rmSync(headFile());
    await until('it is kept', () => existsSync(headFile()));
    await stop(sealer);
  });
});

test('a log that cannot be sealed says for how long events have waited, until it is sealed', async () => {
  const full = async () => {
    throw new Error('full');
  };
  const taken = { store: { ...store, append: full }, logger: silent };
  const sealer = await open({ eventsMax: 1 }, taken);
  expect((await sealer.overdue()).sealSeconds).toBeGreaterThan(0);
  await stop(sealer);
  await startAndStop();
  expect((await (await open()).overdue()).sealSeconds).toBe(0);
});

test('a head that the key has not signed, and one whose key was changed since, are told apart', async () => {
  const sealer = await open();
  await add('pay_a');
  await until('it is kept', () => existsSync(headFileOf({ keyFile })));
  const text = readFileSync(headFileOf({ keyFile }), 'utf8');
  await stop(sealer);
  const [before = '', after = ''] = text.split(/(?<="signature":")./);
  const changed = text[before.length] === 'A' ? 'B' : 'A';
  writeFileSync(headFileOf({ keyFile }), before + changed + after);
  await expect(open()).rejects.toThrow(
    /elsewhere\.pem\.head holds a head that the sealing key has not signed/,
  );
  writeFileSync(headFileOf({ keyFile }), text);
  await rotateSealingKey(store, { keyFile, keepsHead: false });
  await startAndStop();
});

test('a seal that cannot be stored holds up neither the stop nor an append', async () => {
  await startAndStop();
  await add('pay_new');
  const sealer = await open();
  await store.close();
  await stop(sealer);
  store = await openSqliteEventStore({ file: log.file, newThread: keptThread });
  await startAndStop();
  expect(await seals()).toHaveLength(2);
});

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
    const sealed = { seals: 5, eventsAfter: 0 };
    for (const key of [old, second, ownPublicKey()])
      expect(await verifyFrom(key)).toMatchObject({ ok: true, sealed });
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
    const verified = await verifyFrom(publicKeyOf(strange));
    expect(verified).toMatchObject({ ok: true, sealed: { seals: 1 } });
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
    store = await openSqliteEventStore({ file: log.file });
    // A seal of the rewritten log by the old key, in the place of the true one.
    const logHash = (await store.hashAt('36'))?.logHash ?? '';
    const seal = makeSeal(old, { log: await logIdOf(store), position: '36', logHash });
    await store.close();
    const again = openRows(log.file);
    const forged = (text: string) => JSON.stringify({ ...JSON.parse(text), data: seal });
    again.write(rewritten(again.rows, sealed, forged));
    again.close();
    rmSync(headFileOf({ keyFile }));
    store = await openSqliteEventStore({ file: log.file });
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
