/**
 * `npm run env [-- file]`: random secrets in `.env`, the tokens' key pair in `.keys` next to it (`--keys`:
 * alone). Changes no existing file: another IDEMPOTENCY_SECRET would let a repeat charge again (gaps §8).
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { openLocalKeys } from '../shared/http/auth/local-keys.ts';

/** Compose starts no service without these. */
const SECRETS = [
  'IDEMPOTENCY_SECRET',
  'WEBHOOK_SECRET',
  'PERSONAL_DATA_KEK',
  'PROVIDER_TOKEN',
  'MONGODB_ROOT_PASSWORD',
  'MONGODB_COMMAND_PASSWORD',
  'MONGODB_READ_PASSWORD',
  'MONGODB_WRITE_PASSWORD',
  'MONGODB_KEY',
  'KAFKA_BROKER_PASSWORD',
  'KAFKA_SASL_PASSWORD',
  'KAFKA_READER_PASSWORD',
];
const SECRET_BYTES = 32;

const lines = [
  '# Secrets of this installation. Keep a copy apart from the backups: the service does not',
  '# start on its data with another IDEMPOTENCY_SECRET, WEBHOOK_SECRET or PERSONAL_DATA_KEK.',
  // MongoDB takes no other characters in its key than those of base64.
  ...SECRETS.map((name) => `${name}=${randomBytes(SECRET_BYTES).toString('hex')}`),
];
const { values, positionals } = parseArgs({
  options: { keys: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const file = resolve(positionals[0] ?? join(import.meta.dirname, '../.env'));
const keys = join(dirname(file), '.keys');
const signingKey = join(keys, 'signing-key.json');

const quoted = (path: string): string => `'${path.replaceAll("'", "'\\''")}'`;

/** `. .keys/cli.sh` lets a shell talk to the containers; it reads settings as Compose does: environment, else `.env`. */
const CLI = readFileSync(join(import.meta.dirname, 'keys-cli.sh'), 'utf8')
  .replace('__ENV_FILE__', () => quoted(file))
  .replace('__KEYS__', () => quoted(keys));

const writeKeys = async (): Promise<void> => {
  mkdirSync(keys, { recursive: true, mode: 0o700 });
  const { publicJwk } = await openLocalKeys(keys);
  writeFileSync(join(keys, 'jwks.json'), JSON.stringify({ keys: [publicJwk] }), { mode: 0o644 });
  writeFileSync(join(keys, 'cli.sh'), CLI, { mode: 0o600 });
};

const fail = (line: string): void => {
  process.stderr.write(`payments: ${line}\n`);
  process.exitCode = 1;
};

try {
  if (values.keys && existsSync(signingKey)) {
    fail(`${signingKey} is there already and stays as it is: remove ${keys} for another pair`);
  } else {
    if (!values.keys) writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600, flag: 'wx' });
    await writeKeys();
    const secrets = values.keys ? '' : `${file} holds ${SECRETS.length} secrets, and `;
    process.stderr.write(
      `payments: ${secrets}${keys} holds the key pair of the tokens; keep it out of git\n`,
    );
  }
} catch (error) {
  const { code } = error as NodeJS.ErrnoException;
  fail(
    code === 'EEXIST'
      ? `${file} is there already and stays as it is: its secrets belong to the stored payments`
      : `${file} cannot be written (${code ?? 'unknown error'})`,
  );
}
