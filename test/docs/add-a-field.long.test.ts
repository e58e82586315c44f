/**
 * docs/how-to/add-a-field-to-an-event.md, followed to the letter in a copy of the project: two optional fields of
 * the merchant, `salesChannel` from the request to the topics, and `giftNote`, which is sealed.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { folderOfTests } from '../support/temporary-folder.ts';

const ROOT = join(import.meta.dirname, '../..');
const PAGE = readFileSync(join(ROOT, 'docs/how-to/add-a-field-to-an-event.md'), 'utf8');
const FROZEN = 'test/payment/stored-events/PaymentCreated.v2.json';

const folder = folderOfTests();
const at = (file: string): string => join(folder, 'project', file);
const textOf = (file: string): string => readFileSync(at(file), 'utf8');

/** A line after the one that stands there; the page has to name the file. */
const addAfter = (file: string, line: string, added: string): void => {
  expect(PAGE).toContain(file.replace('docs/', '../'));
  const text = textOf(file);
  expect(text).toContain(line);
  writeFileSync(at(file), text.replace(line, `${line}${added}`));
};

const npm = (...args: string[]) => {
  const ran = spawnSync('npm', args, { cwd: at('.'), encoding: 'utf8', env: ENV });
  return { code: ran.status, text: ran.stdout + ran.stderr };
};
/** In the copy nothing is known of the run that this test is part of. */
const ENV = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => ['PATH', 'HOME', 'TMPDIR'].includes(name)),
);
const passes = (...args: string[]): void => {
  const { code, text } = npm(...args);
  expect([code, code === 0 ? '' : text.slice(-4_000)]).toEqual([0, '']);
};
/** The hash that a failing test prints. */
const printedHash = (suite: string, hash: RegExp): string => {
  const { code, text } = npm('test', '--', suite);
  expect(code).not.toBe(0);
  return hash.exec(text)?.[1] ?? `no hash in ${text.slice(-2_000)}`;
};

beforeAll(() => {
  mkdirSync(at('.'), { recursive: true });
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' });
  for (const file of files.split('\0').filter((one) => one !== ''))
    cpSync(join(ROOT, file), at(file));
  execFileSync('cp', ['-al', join(ROOT, 'node_modules'), at('node_modules')]);
});

test('every step of the page can be done, and what has to pass passes', () => {
  const line = / {2}descriptor: .*\n/.exec(textOf('shared/payment/fields.ts'))?.[0] ?? '';
  const published = "  salesChannel: published(freeText, 'Where the order was made.'),\n";
  const sealed = "  giftNote: freeText.describe('From the buyer.'),\n";
  addAfter('shared/payment/fields.ts', line, published + sealed);
  addAfter('docs/privacy.md', '| `merchantReference`, ', '`salesChannel`, ');
  addAfter('docs/privacy.md', '| `descriptor`, ', '`giftNote`, ');
  const row = "| descriptor | string | Text shown on the customer's bank statement. |\n";
  const rows = [
    '| salesChannel | string | Where the order was made. |',
    '| giftNote | string | - |',
  ];
  addAfter('docs/interface.md', row, `${rows.join('\n')}\n`);

  const form = JSON.parse(textOf(FROZEN));
  form.stored.data.details.salesChannel = 'web';
  const frozen = at(FROZEN.replace('.json', '.with-sales-channel.json'));
  const freeze = () => writeFileSync(frozen, `${JSON.stringify(form, null, 2)}\n`);
  freeze();
  form.hash = printedHash('test/payment/stored-events', /Received: "([0-9a-f]{64})"/);
  freeze();
  passes('test', '--', 'test/payment/stored-events');

  const change = (file: string, from: RegExp, to: (...found: string[]) => string) =>
    writeFileSync(at(file), textOf(file).replace(from, to));
  const next = (_: string, before: string, version: string) => `${before}${Number(version) + 1}`;
  const suite = 'test/payment/read-model-version.test.ts';
  change('shared/payment/fold.ts', /(READ_MODEL_VERSION = )(\d+)/, next);
  const hash = printedHash(suite, /\+ +"hash": "([0-9a-f]{16})"/);
  change(suite, /(version: )(\d+)/, next);
  change(suite, /hash: '[0-9a-f]{16}'/, () => `hash: '${hash}'`);
  passes('test', '--', 'test/payment');

  passes('run', 'docs:openapi');
  passes('run', 'docs:topics');
  const added = String.raw`/^ *"(?:salesChannel|giftNote)": \{\n(?: *"(?:type|maxLength|description)": .*\n)* *\},?\n/gm`;
  const entry = `  { names: /^docs\\/openapi\\.json$/, from: ${added}, to: '', reason: 'A merchant may say more.' },`;
  change('test/golden/differences.ts', /\n\];\n/, () => `\n${entry}\n];\n`);

  passes('run', 'check:types');
  const suites =
    'payment golden topics/topics docs/privacy command-api/create personal-data/erasure';
  passes('test', '--', ...suites.split(' ').map((one) => `test/${one}`));
});
