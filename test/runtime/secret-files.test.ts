/** docs/settings.md: each secret `X` can stand in the file that `X_FILE` names. */
import { chmodSync, chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { loadConfig } from '../../shared/runtime/load-config.ts';
import { SECRET_SETTINGS } from '../../shared/runtime/settings/table.ts';
import { folderOfTests } from '../support/temporary-folder.ts';

const folder = folderOfTests();

const SECRET = 's'.repeat(32);
const fileOf = (text: string | Uint8Array, mode = 0o600): string => {
  const file = join(folder, crypto.randomUUID());
  writeFileSync(file, text);
  chmodSync(file, mode);
  return file;
};
const problemsOf = (env: NodeJS.ProcessEnv): string[] => {
  const read = loadConfig(env);
  return read.ok ? [] : read.problems;
};

test('every secret and every address that may hold a password can be a file', () => {
  expect(SECRET_SETTINGS).toEqual([
    'EVENTSTOREDB_URL',
    'MONGODB_URL',
    'KAFKA_SASL_PASSWORD',
    'JWT_SECRET',
    'PROVIDER_TOKEN',
    'STRIPE_SECRET_KEY',
    'STRIPE_WEBHOOK_SECRET',
    'IDEMPOTENCY_SECRET',
    'IDEMPOTENCY_SECRET_PREVIOUS',
    'WEBHOOK_SECRET',
    'PERSONAL_DATA_KEK',
    'PERSONAL_DATA_PREVIOUS_KEK',
  ]);
});

test.each([`${SECRET}\n`, SECRET, `${SECRET}\r\n`])(
  'the content is the secret, without a line break at its end',
  (text) => {
    const file = fileOf(text);
    const read = loadConfig({ JWT_SECRET_FILE: file, IDEMPOTENCY_SECRET_FILE: file });
    if (!read.ok) throw new Error(read.problems.join());
    expect(read.config.tokens.keys).toEqual({ kind: 'secret', secret: SECRET });
    expect(read.config.idempotencySecret).toBe(SECRET);
  },
);

test.each([0o400, 0o600])('a file of mode %i is read', (mode) => {
  expect(problemsOf({ PROVIDER_TOKEN_FILE: fileOf('token', mode) })).toEqual([]);
});

const isRoot = process.getuid?.() === 0;
const asRoot = isRoot ? test : test.skip;
const why = isRoot ? '' : ' (skipped: only root gives files to another account)';
const OTHER_GROUP = 54_321;

asRoot.each<[string, number, number, number, boolean]>([
  ['a group of its own may read', 0, 0, 0o440, true],
  ['a group of its own may read, root write', 0, 0, 0o640, true],
  ['another group may read', 0, OTHER_GROUP, 0o440, false],
  ['another account than root gives it', 1_000, 0, 0o440, false],
  ['the group may write', 0, 0, 0o660, false],
  ['all may read', 0, 0, 0o444, false],
])(`a file of root where %s${why}`, (_, uid, gid, mode, isTaken) => {
  const file = fileOf(SECRET, mode);
  chownSync(file, uid, gid);
  expect(problemsOf({ JWT_SECRET_FILE: file })).toHaveLength(isTaken ? 0 : 1);
});

test.each<[string, () => NodeJS.ProcessEnv, string]>([
  [
    'that others can read',
    () => ({ JWT_SECRET_FILE: fileOf(SECRET, 0o644) }),
    'JWT_SECRET_FILE names a file that others can read (mode 0644); it must be 0600',
  ],
  [
    'that is not there',
    () => ({ JWT_SECRET_FILE: join(folder, 'absent') }),
    'JWT_SECRET_FILE names a file that cannot be read (ENOENT)',
  ],
  ['left empty', () => ({ JWT_SECRET_FILE: fileOf('\n') }), 'JWT_SECRET_FILE names an empty file'],
  [
    'of bytes that are no text',
    () => ({ JWT_SECRET_FILE: fileOf(Buffer.alloc(32, 0xff)) }),
    'JWT_SECRET_FILE names a file that is not UTF-8 text',
  ],
  [
    'beside the setting itself',
    () => ({ JWT_SECRET: SECRET, JWT_SECRET_FILE: fileOf(SECRET) }),
    'JWT_SECRET_FILE must not be set together with JWT_SECRET',
  ],
])('a file %s is a problem, named in one line', (_, env, problem) => {
  expect(problemsOf(env())).toEqual([problem]);
});

test('with a file that cannot be read, its secret is not reported as missing as well', () => {
  const env = {
    EVENTSTOREDB_URL: 'esdb://localhost:2113?tls=false',
    IDEMPOTENCY_SECRET_FILE: join(folder, 'absent'),
    WEBHOOK_SECRET: SECRET,
    PERSONAL_DATA_KEK: SECRET,
  };
  expect(problemsOf(env)).toEqual([
    'IDEMPOTENCY_SECRET_FILE names a file that cannot be read (ENOENT)',
  ]);
});
