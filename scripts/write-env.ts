/**
 * `npm run env [-- file]`: fresh random secrets for docker-compose.yml in `.env`, once. An existing
 * file is never touched: with another IDEMPOTENCY_SECRET a repeated request would charge again
 * (gaps §8).
 */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** Compose does not start the services of docker-compose.yml without these. */
const SECRETS = ['JWT_SECRET', 'IDEMPOTENCY_SECRET', 'PROVIDER_TOKEN'];
const SECRET_BYTES = 32;

const lines = [
  '# The secrets of this installation. Keep a copy with the backups: with another',
  '# IDEMPOTENCY_SECRET the command API does not start on the same events.',
  ...SECRETS.map((name) => `${name}=${randomBytes(SECRET_BYTES).toString('base64url')}`),
];
const file = resolve(process.argv[2] ?? join(import.meta.dirname, '../.env'));

try {
  writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600, flag: 'wx' });
  process.stderr.write(`payments: ${file} holds ${SECRETS.join(', ')}; keep it out of git\n`);
} catch (error) {
  const { code } = error as NodeJS.ErrnoException;
  process.stderr.write(
    code === 'EEXIST'
      ? `payments: ${file} is there already and stays as it is: its secrets belong to the stored payments\n`
      : `payments: ${file} cannot be written (${code ?? 'unknown error'})\n`,
  );
  process.exitCode = 1;
}
