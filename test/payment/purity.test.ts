/** The domain decides and folds; it reads no clock, no file and no network, and knows no engine. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';

const FOLDER = new URL('../../shared/payment/', import.meta.url);
const files = readdirSync(FOLDER).filter((name) => name.endsWith('.ts'));

const ALLOWED: Record<string, string[]> = {
  'audit-events.ts': ['zod'],
  'events.ts': ['zod'],
  'fields.ts': ['zod'],
  'seal-events.ts': ['zod'],
  'webhook-events.ts': ['zod'],
  'card.ts': ['card-validator', 'node:util'],
};

const sourceOf = (file: string): string => readFileSync(new URL(file, FOLDER), 'utf8');

test.each(files)('%s imports its neighbours, and only what the domain may have', (file) => {
  const imported = [...sourceOf(file).matchAll(/(?:from\s+|import\(\s*)'([^']+)'/g)].map(
    (m) => m[1],
  );
  const foreign = imported.filter((name) => !name?.match(/^\.\/[a-z-]+\.ts$/));
  expect(foreign.toSorted()).toStrictEqual((ALLOWED[file] ?? []).toSorted());
});

test.each(files)('%s reads no clock, makes no id and waits for nothing', (file) => {
  const impure =
    /Date\.now|new Date|Math\.random|\bcrypto\b|process\.|\bawait\b|\basync\b|setTimeout/;
  expect(sourceOf(file)).not.toMatch(impure);
});
