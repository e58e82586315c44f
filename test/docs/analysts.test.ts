/** The queries of docs/analysts.md name fields that the messages have. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { ROOT } from '../support/service.ts';

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const page = read('docs/analysts.md');

/** The fields of a message's data, by the schemas of all messages. */
const fields = new Set(
  readdirSync(join(ROOT, 'docs/schemas')).flatMap((name) =>
    Object.keys(JSON.parse(read(`docs/schemas/${name}`)).properties ?? {}),
  ),
);

test('every field that a query reads is one of the messages', () => {
  const named = [
    ...[...page.matchAll(/\bdata\.(\w+)/g)].map(([, name = '']) => name),
    ...[...page.matchAll(/'data', '(\w+)'/g)].map(([, name = '']) => name),
  ];
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter((name) => !fields.has(name))).toEqual([]);
});

test('the topics and the flags of the page are those of the command line', () => {
  const verbs = read('cli/topics.ts');
  const flags = [...page.matchAll(/topics tail .*?(--\w+)/g)].map(([, flag = '']) => flag);
  expect(flags.filter((flag) => !verbs.includes(flag))).toEqual([]);
});

test('the reader is started with a Node that reads TypeScript, whatever Node is installed', () => {
  for (const text of [page, read('examples/consumer.ts')]) {
    expect(text).toContain('npx node examples/consumer.ts');
    expect(text).not.toMatch(/(?<!npx )node examples/);
  }
});
