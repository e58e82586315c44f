/** `npm run env`: secrets that nobody else has, made once. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { NODE, ROOT } from '../support/service.ts';

const folder = mkdtempSync(join(tmpdir(), 'payments-env-'));
afterAll(() => rmSync(folder, { recursive: true }));

const write = (file: string) =>
  spawnSync(NODE, [join(ROOT, 'scripts/write-env.ts'), file], { encoding: 'utf8' });
const secretsIn = (file: string): Map<string, string> =>
  new Map(
    [...readFileSync(file, 'utf8').matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name, value]) => [
      String(name),
      String(value),
    ]),
  );

test('it writes every secret that the compose file asks for, fresh and for its owner alone', () => {
  const files = ['one', 'two'].map((name) => join(folder, name));
  for (const file of files) expect(write(file).status).toBe(0);
  const compose = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8');
  const wanted = new Set([...compose.matchAll(/\$\{([A-Z_]+):\?/g)].map(([, name]) => name));
  const values = files.flatMap((file) => {
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(new Set(secretsIn(file).keys())).toEqual(wanted);
    return [...secretsIn(file).values()];
  });
  expect(new Set(values).size).toBe(2 * wanted.size);
  // 32 bytes, in characters that a shell takes as they are.
  for (const value of values) expect(value).toMatch(/^[A-Za-z0-9_-]{43}$/);
});

test('it never touches a file that is there: another secret would charge repeats again', () => {
  const file = join(folder, 'kept');
  write(file);
  const before = readFileSync(file, 'utf8');
  const again = write(file);
  expect(again.status).toBe(1);
  expect(again.stderr).toBe(
    `payments: ${file} is there already and stays as it is: its secrets belong to the stored payments\n`,
  );
  expect(readFileSync(file, 'utf8')).toBe(before);
});

test('a folder that cannot be written is one line and exit code 1', () => {
  const refused = write(join(folder, 'absent', 'env'));
  expect(refused.status).toBe(1);
  expect(refused.stderr.trimEnd().split('\n')).toEqual([
    expect.stringMatching(/^payments: .* cannot be written \(ENOENT\)$/),
  ]);
});
