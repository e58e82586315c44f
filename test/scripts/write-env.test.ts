/** `npm run env` makes the secrets of an installation, once. */
import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { cleanEnv, LAUNCHER, NODE, ROOT } from '../support/service-processes.ts';
import { folderOfTests } from '../support/temporary-folder.ts';

const folder = folderOfTests();

const write = (...args: string[]) =>
  spawnSync(NODE, [LAUNCHER, 'scripts/write-env.ts', ...args], {
    encoding: 'utf8',
    env: cleanEnv(),
  });
const secretsIn = (file: string): Map<string, string> =>
  new Map(
    [...readFileSync(file, 'utf8').matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name, value]) => [
      String(name),
      String(value),
    ]),
  );

/** Two installations, one in a folder of any name. */
const installation = join(folder, "o'clock");
const files = [installation, join(folder, 'other')].map((place) => join(place, '.env'));
const keyFile = (name: string): string => join(installation, '.keys', name);
beforeAll(() => {
  for (const file of files) {
    mkdirSync(dirname(file));
    expect(write(file).status).toBe(0);
  }
});

test('npm run env writes a new value for every secret that docker-compose.yml needs, for its owner alone', () => {
  const compose = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8');
  const wanted = new Set([...compose.matchAll(/\$\{([A-Z_]+):\?/g)].map(([, name]) => name));
  const values = files.flatMap((file) => {
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(new Set(secretsIn(file).keys())).toEqual(wanted);
    return [...secretsIn(file).values()];
  });
  expect(new Set(values).size).toBe(2 * wanted.size);
  // 32 bytes, in characters that need no quotes in a shell, in an address and in MongoDB's key file.
  for (const value of values) expect(value).toMatch(/^[0-9a-f]{64}$/);
});

test('the containers get the public key of a pair, with whose private key this host makes tokens', () => {
  expect(statSync(join(installation, '.keys')).mode & 0o777).toBe(0o700);
  expect(statSync(keyFile('signing-key.json')).mode & 0o777).toBe(0o600);
  const [publicKey] = JSON.parse(readFileSync(keyFile('jwks.json'), 'utf8')).keys;
  const { d, ...pair } = JSON.parse(readFileSync(keyFile('signing-key.json'), 'utf8'));
  expect(d).toMatch(/^[A-Za-z0-9_-]{43}$/);
  expect(publicKey).toEqual(pair);
  const { stdout } = spawnSync(
    'sh',
    ['-c', `. ./.keys/cli.sh; exec '${NODE}' '${join(ROOT, 'cli/payments.mjs')}' token`],
    { cwd: installation, encoding: 'utf8', env: cleanEnv() },
  );
  const [header = '', claims = ''] = stdout.split('.');
  const partOf = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString());
  expect(partOf(header)).toMatchObject({ alg: 'ES256', kid: publicKey.kid });
  expect(partOf(claims)).toMatchObject({ iss: 'payments', aud: 'payments' });
});

test('the shell file reads settings as Compose does, from the environment, else from .env, in a folder of any name', () => {
  const shownWith = (env: NodeJS.ProcessEnv): string =>
    spawnSync(
      'sh',
      [
        '-c',
        '. ./.keys/cli.sh; echo "$PAYMENTS_URL $DATA_DIR $JWT_ISSUER,$JWT_AUDIENCE,$JWT_MERCHANT_CLAIM"',
      ],
      { cwd: installation, env: { ...cleanEnv(), ...env }, encoding: 'utf8' },
    ).stdout;
  const keys = dirname(keyFile('cli.sh'));
  expect(shownWith({})).toBe(`http://localhost:8080 ${keys} payments,payments,\n`);
  const settings = [
    'GATEWAY_PORT=8000',
    '# GATEWAY_PORT=8001',
    'JWT_ISSUER="our issuer" # ours',
    "JWT_AUDIENCE='shop'",
    'JWT_MERCHANT_CLAIM=tenant # of our issuer',
  ];
  appendFileSync(join(installation, '.env'), `${settings.join('\n')}\n`);
  const ours = `${keys} our issuer,shop,tenant\n`;
  expect(shownWith({})).toBe(`http://localhost:8000 ${ours}`);
  expect(shownWith({ GATEWAY_PORT: '9000' })).toBe(`http://localhost:9000 ${ours}`);
});

test('npm run env -- --keys makes another pair where there is none, and leaves .env as it is', () => {
  const [, file = ''] = files;
  const secrets = readFileSync(file, 'utf8');
  const keys = join(dirname(file), '.keys');
  const publicKeys = () => readFileSync(join(keys, 'jwks.json'), 'utf8');
  const before = publicKeys();
  const refused = write('--keys', file);
  expect([refused.status, refused.stderr]).toEqual([
    1,
    `payments: ${keys}/signing-key.json is there already and stays as it is: remove ${keys} for another pair\n`,
  ]);
  expect(publicKeys()).toBe(before);
  rmSync(keys, { recursive: true });
  expect(write('--keys', file).status).toBe(0);
  expect(publicKeys()).not.toBe(before);
  expect(readFileSync(join(keys, 'cli.sh'), 'utf8')).toContain(`DATA_DIR='${keys}'`);
  expect(readFileSync(file, 'utf8')).toBe(secrets);
});

test('npm run env leaves an existing file as it is, for with other secrets repeats would be charged again', () => {
  const [file = ''] = files;
  const before = readFileSync(file, 'utf8');
  const again = write(file);
  expect(again.status).toBe(1);
  expect(again.stderr).toBe(
    `payments: ${file} is there already and stays as it is: its secrets belong to the stored payments\n`,
  );
  expect(readFileSync(file, 'utf8')).toBe(before);
});

test('a folder that cannot be written to is one line and exit code 1', () => {
  const refused = write(join(folder, 'absent', 'env'));
  expect(refused.status).toBe(1);
  expect(refused.stderr.trimEnd().split('\n')).toEqual([
    expect.stringMatching(/^payments: .* cannot be written \(ENOENT\)$/),
  ]);
});
