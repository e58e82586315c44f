/** docs/signed-texts.md is enough to verify an export: its example does, and needs none of our code. */
import { execFileSync, spawnSync } from 'node:child_process';
import { createPublicKey, generateKeyPairSync, type KeyObject, verify } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { makeRotation, makeSeal, publicKeyOf, signHead } from '../../audit/seals/seals.ts';
import { runCli } from '../support/cli.ts';
import { SECRET, serviceOfTests } from '../support/service-in-process.ts';
import { ROOT } from '../support/service-processes.ts';
import { folderOfTests } from '../support/temporary-folder.ts';

const EXAMPLE = 'examples/verify_export.py';
const page = readFileSync(join(ROOT, 'docs/signed-texts.md'), 'utf8');

const folder = folderOfTests();
const service = await serviceOfTests();
await service.create({ captureNow: true });
await service.create({ merchantReference: 'Zoë "Ünal" \\ 李' });
const url = await service.listen();
const env = { PAYMENTS_URL: url, JWT_SECRET: SECRET, DATA_DIR: service.dataDir };
const cli = (...args: string[]) => runCli(args, env);
const key = join(folder, 'sealing-key.public.pem');
writeFileSync(key, (await cli('keys', 'show')).stdout);

const OPENSSL_3 = /^OpenSSL [3-9]/;
const canRun =
  spawnSync('python3', ['--version']).status === 0 &&
  OPENSSL_3.test(spawnSync('openssl', ['version']).stdout?.toString() ?? '');
// Where the machine has no Python or no OpenSSL 3, the example is not tried.
const whereItRuns = canRun ? test : test.skip;

const exported = async (name: string, ...args: string[]): Promise<string> => {
  const out = join(folder, name);
  expect((await cli('export', '--out', out, '--force', ...args)).code).toBe(0);
  return out;
};
const example = (file: string, keyFile = key) => {
  const { status, stdout, stderr } = spawnSync('python3', [join(ROOT, EXAMPLE), file, keyFile]);
  return { status, stdout: stdout.toString(), stderr: stderr.toString() };
};
const said = (status: number, line: RegExp) => {
  return { status, stdout: expect.stringMatching(line), stderr: '' };
};
const INTACT = said(0, /^intact {2}\d+ events of log /);
const broken = (why: string) => said(3, new RegExp(`^BROKEN {2}.*${why}`));

describe('the example of at most 80 lines', () => {
  test('is as short as the page says, and the page names it', () => {
    const text = readFileSync(join(ROOT, EXAMPLE), 'utf8');
    expect(text.trimEnd().split('\n').length).toBeLessThanOrEqual(80);
    const imports = [...text.matchAll(/^(?:import|from) (\w+)/gm)].map(([, name]) => name);
    expect(imports.join(' ')).toBe('base64 hashlib json subprocess sys tempfile pathlib');
    expect(page).toContain(`python3 ${EXAMPLE} log.jsonl sealing-key.public.pem`);
  });

  whereItRuns.each<[what: string, args: string[]]>([
    ['the whole log', []],
    ['what follows a position', ['--from', '3']],
    ['one merchant', ['--merchant', 'm_test']],
  ])('verifies an export of %s', async (_what, args) => {
    expect(example(await exported('whole.jsonl', ...args))).toEqual(INTACT);
  });

  whereItRuns(
    'fails on an export that was changed, and on a manifest that was changed',
    async () => {
      const out = await exported('changed.jsonl');
      const text = readFileSync(out, 'utf8');
      const changes: [change: (text: string) => string, said: string][] = [
        [(all) => all.replace(/"amount":(\d+)/, '"amount":9$1'), 'line 1: it does not follow'],
        [(all) => all.slice(all.indexOf('\n') + 1), 'line 1: it does not follow'],
        [(all) => `${all.trimEnd().split('\n').slice(0, -1).join('\n')}\n`, 'the file: its count'],
        [(all) => all.replace('{', '['), 'line 1: it is no line of an export'],
        [(all) => all.trimEnd(), 'the file: its bytes'],
      ];
      for (const [change, said] of changes) {
        writeFileSync(out, change(text));
        expect(example(out)).toEqual(broken(said));
      }
      writeFileSync(out, text);
      const manifest = readFileSync(`${out}.manifest.json`, 'utf8');
      for (const [from, to] of [
        [/"count": (\d+)/, '"count": 1'],
        [/"exportedAt": "20/, '"exportedAt": "21'],
        [/,\s+"signature"[^}]*\}/, ''],
      ] as const) {
        writeFileSync(`${out}.manifest.json`, manifest.replace(from, to));
        expect(example(out)).toEqual(broken("manifest: its signature is not the key's"));
      }
      writeFileSync(`${out}.manifest.json`, manifest);
      expect(example(out)).toEqual(INTACT);
    },
  );

  whereItRuns(
    'makes PEM of the key that a manifest names as the page does, and refuses another key',
    async () => {
      const out = await exported('key.jsonl');
      const { signature } = JSON.parse(readFileSync(`${out}.manifest.json`, 'utf8'));
      const [, commands = ''] = /^X=\S+\n(printf .*)\nopenssl/m.exec(page) ?? [];
      const made = join(folder, 'made');
      for (const [x, said] of [
        [signature.publicKey, INTACT],
        ['uhD52RXojehkUWdBBJFFSGtpMqrKYeaa9nqHJFejvXs', broken('manifest: ')],
      ]) {
        execFileSync('sh', ['-c', `mkdir -p ${made}; cd ${made}; X=${x}\n${commands}`]);
        expect(example(out, join(made, 'sealing-key.public.pem'))).toEqual(said);
      }
    },
  );
});

/** The text that the page's row describes, of these data. */
const textOf = (row: RegExp, data: object): string => {
  const cell =
    page
      .split('\n')
      .find((line) => row.test(line))
      ?.split(' | ')[1] ?? '';
  const [, title = '', named = ''] = /^`(.*)⏎`, then (.*), each with `⏎`/.exec(cell) ?? [];
  const names = [...named.matchAll(/`(\w+)`/g)].map(([, name = '']) => name);
  const values = new Map<string, unknown>(Object.entries(data));
  const fields = names.filter((name) => name !== 'none').map((name) => values.get(name) ?? 'none');
  return [title, ...fields].map((field) => `${field}\n`).join('');
};

const isSigned = (text: string, x: string, signature: string): boolean => {
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  return verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64url'));
};

describe('the page has, to the byte,', () => {
  const [one, other] = [0, 1].map(() => generateKeyPairSync('ed25519').privateKey) as [
    KeyObject,
    KeyObject,
  ];
  const head = { log: 'a-log', position: '4711/4711', logHash: 'ab'.repeat(32) };
  const bounded = { ...head, eventsMax: 10_000 };

  test.each([
    ['with a bound', /^\| `signature` of `LogSealed`/, bounded],
    ['without one', /^\| the same, without `eventsMax`/, head],
  ])('the text of a seal %s', (_what, row, data) => {
    const { publicKey, signature, ...sealed } = makeSeal(one, data);
    expect(isSigned(textOf(row, sealed), publicKey, signature)).toBe(true);
    expect(isSigned(textOf(row, { ...sealed, position: '1' }), publicKey, signature)).toBe(false);
  });

  test.each([[bounded], [head]])('the text of a changed key: %j', (data) => {
    const rotation = makeRotation(one, other, data);
    const text = textOf(/^\| `signature` \(old key\)/, rotation);
    const { oldPublicKey, newPublicKey, signature, newSignature } = rotation;
    expect(isSigned(text, oldPublicKey, signature)).toBe(true);
    expect(isSigned(text, newPublicKey, newSignature)).toBe(true);
    expect(isSigned(text, newPublicKey, signature)).toBe(false);
  });

  test('the text of the newest head', () => {
    const { signature, ...signed } = signHead(one, head);
    const text = textOf(/^\| `last\.signature` of the head file/, signed);
    expect(isSigned(text, publicKeyOf(one), signature)).toBe(true);
  });
});
