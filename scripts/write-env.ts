/**
 * `npm run env [-- file]`: fresh random secrets for docker-compose.yml in `.env`, once, and beside it
 * the folder `.keys` with the key pair of the tokens. An existing file is never touched: with another
 * IDEMPOTENCY_SECRET a repeated request would charge again (gaps §8).
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { openLocalKeys } from '../shared/http/auth/local-keys.ts';

/** Compose does not start the services of docker-compose.yml without these. */
const SECRETS = [
  'IDEMPOTENCY_SECRET',
  'WEBHOOK_SECRET',
  'PROVIDER_TOKEN',
  'MONGODB_ROOT_PASSWORD',
  'MONGODB_READ_PASSWORD',
  'MONGODB_WRITE_PASSWORD',
  'MONGODB_KEY',
  'KAFKA_BROKER_PASSWORD',
  'KAFKA_SASL_PASSWORD',
  'KAFKA_READER_PASSWORD',
];
const SECRET_BYTES = 32;

const lines = [
  '# The secrets of this installation. Keep a copy with the backups: with another',
  '# IDEMPOTENCY_SECRET or WEBHOOK_SECRET the service does not start on the same events.',
  // MongoDB takes no other characters in its key than those of base64.
  ...SECRETS.map((name) => `${name}=${randomBytes(SECRET_BYTES).toString('hex')}`),
];
const file = resolve(process.argv[2] ?? join(import.meta.dirname, '../.env'));
const keys = join(dirname(file), '.keys');

/** What a shell on this host needs to talk to the containers: `. .keys/cli.sh`. */
const CLI = [
  `export PAYMENTS_URL="http://localhost:\${GATEWAY_PORT:-8080}"`,
  `DATA_DIR='${keys.replaceAll("'", "'\\''")}' JWT_ISSUER=payments JWT_AUDIENCE=payments\n`,
].join(' ');

try {
  writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600, flag: 'wx' });
  mkdirSync(keys, { recursive: true, mode: 0o700 });
  const { publicJwk } = await openLocalKeys(keys);
  writeFileSync(join(keys, 'jwks.json'), JSON.stringify({ keys: [publicJwk] }), { mode: 0o644 });
  writeFileSync(join(keys, 'cli.sh'), CLI, { mode: 0o600 });
  process.stderr.write(
    `payments: ${file} holds ${SECRETS.length} secrets, and ${keys} the key pair of the tokens; keep both out of git\n`,
  );
} catch (error) {
  const { code } = error as NodeJS.ErrnoException;
  process.stderr.write(
    code === 'EEXIST'
      ? `payments: ${file} is there already and stays as it is: its secrets belong to the stored payments\n`
      : `payments: ${file} cannot be written (${code ?? 'unknown error'})\n`,
  );
  process.exitCode = 1;
}
