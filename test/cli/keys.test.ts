/** `payments keys`, for auditors and for its change; what a key and the seals say of an exported file. */
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { chmodSync, chownSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openSealer } from '../../audit/seals/open.ts';
import { keyIdOf, publicKeyOf } from '../../audit/seals/seals.ts';
import { openDataFolder } from '../../embedded/data-folder.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { expectError, expectOutput, runCli } from '../support/cli.ts';
import { testUnless } from '../support/describe-driver.ts';
import { openSealedLog, type SealedLog } from '../support/sealed-logs.ts';
import { silent } from '../support/silent-log.ts';
import { exportLog, openFilledLog, openRows, rewritten } from '../support/tampering.ts';

const log = await openFilledLog();
const { store } = log;
const fileOf = (name: string) => join(log.folder, name);
const seals = { keyFile: undefined, eventsMax: 10_000, everyMs: 3_600_000 };
await (await openSealer({ config: { seals }, store, fileOf, log: silent })).stop();
await store.close();
const keyFile = fileOf('sealing-key.pem');
afterAll(() => log.close());

const cli = (...args: string[]) => runCli(args, { DATA_DIR: log.folder, NO_COLOR: '1' });

describe('verify and events --file --key', () => {
  let out: string;
  const events = (file: string, ...args: string[]) =>
    cli('events', 'pay_0', '--file', file, ...args);
  const keyOf = async (name: string): Promise<string> => {
    const file = join(log.folder, name);
    writeFileSync(file, (await cli('keys', 'show')).stdout);
    return file;
  };
  const exported = async (name: string, from?: string): Promise<string> => {
    const store = await openSqliteEventStore({ file: log.file });
    try {
      return (await exportLog({ ...log, store }, join(log.folder, name), from)).out;
    } finally {
      await store.close();
    }
  };

  test('checks the seals of an export from an old key or a new one, and names a strange one', async () => {
    const old = await keyOf('old.pem');
    expect((await cli('keys', 'rotate')).code).toBe(0);
    const newer = await keyOf('newer.pem');
    out = await exported('log.jsonl');
    for (const key of [old, newer]) {
      const { code, stdout } = await cli('verify', '--file', out, '--key', key);
      expect([code, stdout]).toEqual([
        0,
        expect.stringMatching(
          /^seals {2}2 fit, the last up to #37 by key \w{16}; 0 events after it$/m,
        ),
      ]);
      expect(stdout).not.toContain('not checked');
      for (const state of [[], ['--state']])
        expect(await events(out, '--key', key, ...state)).toMatchObject({ code: 0, stderr: '' });
    }
    const strange = join(log.folder, 'strange.pem');
    const { publicKey } = generateKeyPairSync('ed25519');
    writeFileSync(strange, publicKey.export({ format: 'pem', type: 'spki' }));
    const refused = await cli('verify', '--file', out, '--key', strange);
    const place = /line 37, position 37 \(stream log-seals, .* it was sealed with another key/;
    expectError(refused, 3, place);
    expectError(await events(out, '--key', strange), 3, 'it was sealed with another key');
  });

  test('finds the events of a payment forged before a seal, every hash and the manifest right', async () => {
    const { rows, write, restore, close } = openRows(log.file);
    const toThief = (text: string) => text.replace('"merchantId":"m_0"', '"merchantId":"m_9"');
    write(rewritten(rows, 0, toThief));
    const forged = await exported('forged.jsonl');
    restore();
    close();
    for (const args of [[], ['--state'], ['--key', keyFile]]) {
      const { code, stdout, stderr } = await events(forged, ...args);
      expect([code, stderr]).toEqual([
        3,
        expect.stringMatching(
          /is not as it was exported, so it is not proven .* position 37: the log is not the one that was sealed at position 36; next: payments verify --file/,
        ),
      ]);
      expect(stdout).not.toBe('');
    }
  });

  test('says without a key that the seals were not checked against one, and wants seals with one', async () => {
    const without = await cli('verify', '--file', out);
    expectOutput(without, /^seals {2}the seals were not checked against a key: payments verify/m);
    const key = join(log.folder, 'newer.pem');
    const bare = await openFilledLog();
    const { out: unsealed } = await exportLog(bare);
    const part = await exported('part.jsonl', '12');
    for (const none of [
      await cli('verify', '--file', unsealed, '--key', key),
      await events(unsealed, '--key', key),
      await events(part, '--key', key),
    ])
      expectError(none, 1, /has no seal and no signed manifest, so \S+ proves/);
    expect((await events(unsealed)).code).toBe(0);
    await bare.close();
    const secret = await cli('verify', '--file', out, '--key', out);
    expectError(secret, 1, /holds no Ed25519 key/);
    for (const args of [
      ['verify', '--all'],
      ['events', 'pay_0'],
    ])
      expect((await cli(...args, '--key', key)).code).toBe(2);
  });
});

describe('payments keys', () => {
  test('show prints the id and the public key, which a file can hold, and nothing secret', async () => {
    const [shown, asJson] = await Promise.all([
      cli('keys', 'show', '--data', log.folder),
      cli('keys', 'show', '--format', 'json'),
    ]);
    expect([shown.code, shown.stderr]).toEqual([0, '']);
    const publicKey = publicKeyOf(createPublicKey(readFileSync(keyFile, 'utf8')));
    expect(publicKeyOf(createPublicKey(shown.stdout))).toBe(publicKey);
    expect(shown.stdout).toContain(`key ${keyIdOf(publicKey)}\n`);
    expect(JSON.parse(asJson.stdout)).toEqual({
      keyId: keyIdOf(publicKey),
      publicKey: shown.stdout.slice(shown.stdout.indexOf('-----BEGIN')),
      jwk: { kty: 'OKP', crv: 'Ed25519', x: publicKey },
    });
    const [, jwk = ''] = /^jwk (.*)$/m.exec(shown.stdout) ?? [];
    expect(JSON.parse(jwk)).toMatchObject({ kty: 'OKP', x: publicKey });
    expect(shown.stdout + asJson.stdout).not.toContain('PRIVATE');
  });

  test('rotate is refused in one line while a service holds the folder, and makes a new key after it', async () => {
    const before = readFileSync(keyFile, 'utf8');
    const held = openDataFolder(log.folder);
    const refused = await cli('keys', 'rotate');
    held.release();
    expectError(refused, 1, /^payments: \S+ is held by a running service, .+: stop it.+\n$/);
    expect(readFileSync(keyFile, 'utf8')).toBe(before);
    const rotated = await cli('keys', 'rotate');
    expectOutput(rotated, /^key \w{16} follows \w{16}\n$/);
    expect(statSync(keyFile).mode & 0o777).toBe(0o600);
    expect((await cli('keys', 'show')).stdout.slice(0, 20)).toBe(rotated.stdout.slice(0, 20));
  });

  const notRoot = process.geteuid?.() === 0 ? undefined : 'only root gives files away';
  testUnless(notRoot, 'rotated by root, key and head stay the files of their user', async () => {
    const head = `${keyFile}.head`;
    chownSync(keyFile, 1234, 1234);
    chmodSync(keyFile, 0o400);
    const env = { DATA_DIR: log.folder, SEALING_KEY_FILE: keyFile };
    expect(await runCli(['keys', 'rotate'], env)).toMatchObject({ code: 0 });
    for (const file of [keyFile, head]) expect(statSync(file)).toMatchObject({ uid: 1234 });
    expect(statSync(keyFile).mode & 0o777).toBe(0o400);
    rmSync(head);
  });

  test('a folder without a key or with another log gets one line', async () => {
    const none = await runCli(['keys', 'show', '--data', join(log.folder, 'none')]);
    expectError(none, 1, /^payments: \S+sealing-key\.pem does not exist: [^\n]+\n$/);
    const other = join(log.folder, 'other.pem');
    writeFileSync(other, 'nothing');
    const wrong = await runCli(['keys', 'rotate'], {
      DATA_DIR: log.folder,
      SEALING_KEY_FILE: other,
    });
    expectError(wrong, 1, /^payments: the rotation is not done: SEALING_KEY_FILE: [^\n]+\n$/);
  });
});

describe('the key of a log at a server', () => {
  let server: SealedLog;
  beforeAll(async () => {
    server = await openSealedLog();
    await server.fill(['pay_1']);
    await server.followAndSeal();
  });
  afterAll(() => server.close());

  test('is shown, and changed beside a service', async () => {
    const { url: EVENTSTOREDB_URL, keyFile: SEALING_KEY_FILE } = server;
    const env = {
      ...{ EVENTSTOREDB_URL, SEALING_KEY_FILE, NO_COLOR: '1' },
      IDEMPOTENCY_SECRET: 'of no use here, and as long as it must be',
      WEBHOOK_SECRET: 'of no use here, and as long as it must be',
      PERSONAL_DATA_KEK: 'of no use here, and as long as it must be',
    };
    const shown = await runCli(['keys', 'show'], env);
    const [keyId] = /\w{16}/.exec(shown.stdout) ?? [];
    const rotated = await runCli(['keys', 'rotate'], env);
    expect(rotated).toMatchObject({
      stderr: expect.stringContaining('Next:'),
      stdout: expect.stringMatching(new RegExp(`^key \\w{16} follows ${keyId}`)),
      code: 0,
    });
    await server.followAndSeal();
  });
});
