/** `payments token` and `payments cards`. */
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { createLocalJWKSet, decodeJwt, jwtVerify } from 'jose';
import { TEST_CARDS } from '../../providers/simulator/test-cards.ts';
import { openLocalKeys } from '../../shared/http/auth/local-keys.ts';
import { runCli } from '../support/cli.ts';
import { folderOfTests } from '../support/temporary-folder.ts';

const folder = folderOfTests();
const env = { DATA_DIR: join(folder, 'not', 'there', 'yet') };

const lifetime = (token: string): number => {
  const { iat = 0, exp = 0 } = decodeJwt(token);
  return exp - iat;
};

describe('gaps §10: payments token', () => {
  test('before the first start makes the key pair that the service will verify with', async () => {
    const { code, stdout, stderr } = await runCli(['token'], env);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/);
    const { publicJwk } = await openLocalKeys(env.DATA_DIR);
    const { payload } = await jwtVerify(stdout.trim(), createLocalJWKSet({ keys: [publicJwk] }));
    expect(payload).toMatchObject({ merchant_id: 'm_demo' });
    expect(payload).not.toHaveProperty('scope');
    expect(lifetime(stdout)).toBe(3600);
    expect(statSync(env.DATA_DIR).mode & 0o777).toBe(0o700);
  });

  test('merchant, scope, time to live, issuer and audience are those of the options and settings', async () => {
    const settings = { ...env, JWT_ISSUER: 'https://issuer.example', JWT_AUDIENCE: 'payments' };
    const scope = ['--scope', 'payments:read ops:admin'];
    const args = ['token', '--merchant', 'm_7', ...scope, '--ttl', '15m'];
    const { stdout } = await runCli(args, settings);
    expect(decodeJwt(stdout)).toMatchObject({
      merchant_id: 'm_7',
      scope: 'payments:read ops:admin',
      iss: 'https://issuer.example',
      aud: 'payments',
    });
    expect(lifetime(stdout)).toBe(900);
  });

  test('a scope that there is not is refused by name, with those that there are', async () => {
    const args = ['token', '--scope', 'payments:read audit:reads'];
    const { code, stdout, stderr } = await runCli(args, env);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('There is no scope audit:reads; there are payments:read, ');
  });

  test('the merchant is in the claim that the service reads first', async () => {
    const { stdout } = await runCli(['token'], { ...env, JWT_MERCHANT_CLAIM: 'org,sub' });
    expect(decodeJwt(stdout)).toMatchObject({ org: 'm_demo' });
  });

  test('a shared secret signs with HS256; a short secret is warned of on stderr', async () => {
    const { code, stdout, stderr } = await runCli(['token'], { ...env, JWT_SECRET: 'short' });
    const key = new TextEncoder().encode('short');
    const { protectedHeader } = await jwtVerify(stdout.trim(), key, { algorithms: ['HS256'] });
    expect({ code, alg: protectedHeader.alg }).toEqual({ code: 0, alg: 'HS256' });
    expect(stderr).toBe('payments: JWT_SECRET is shorter than 32 bytes\n');
  });

  test('where only public keys are set, the command says that the issuer has to make the token', async () => {
    const JWT_JWKS_FILE = join(folder, 'jwks.json');
    writeFileSync(JWT_JWKS_FILE, '{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}');
    const { code, stdout, stderr } = await runCli(['token'], { ...env, JWT_JWKS_FILE });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('the issuer has to make the token');
  });

  test('wrong settings are one line each, nothing on stdout, exit code 1', async () => {
    const { code, stdout, stderr } = await runCli(['token'], { ...env, PORT: 'x', LOG_LEVEL: 'y' });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr.trim().split('\n')).toEqual([
      expect.stringMatching(/^payments: PORT must be/),
      expect.stringMatching(/^payments: LOG_LEVEL must be/),
    ]);
  });

  test.each(['/proc/no-folder', '/dev/null/no-folder'])(
    'a data folder that cannot be made (%s) is one line, never a hang',
    async (DATA_DIR) => {
      const { code, stderr } = await runCli(['token'], { DATA_DIR });
      expect(code).toBe(1);
      expect(stderr).toMatch(/^payments: DATA_DIR: .*\n$/);
    },
  );
});

describe('payments cards', () => {
  test('prints the table by which the simulator decides, as text and as JSON', async () => {
    const { stdout: json } = await runCli(['cards', '--format', 'json']);
    expect(JSON.parse(json)).toEqual(TEST_CARDS.map(({ behaviour: _, ...shown }) => shown));
    const { stdout: pretty } = await runCli(['cards']);
    const [header, ...lines] = pretty.trimEnd().split('\n');
    expect(header).toMatch(/^NUMBER +TOKEN +OUTCOME +FAILURE CODE$/);
    expect(lines.map((line) => line.split(' ')[0])).toEqual(TEST_CARDS.map(({ number }) => number));
  });
});
