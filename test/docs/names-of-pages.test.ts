/** Tables that an operator or a merchant relies on name everything that there is. */
import { expect, test } from '@jest/globals';
import { settings } from '../../shared/runtime/settings/table.ts';
import { SUBSCRIBABLE_TYPES } from '../../shared/webhooks/message.ts';
import { textOf } from '../support/project-files.ts';

const sectionOf = (page: string, title: string): string =>
  textOf(`docs/${page}.md`).split(`## ${title}\n`)[1]?.split(/^## /m)[0] ?? '';
const missing = (section: string, names: readonly string[]): string[] =>
  names.filter((name) => !section.includes(`\`${name}\``));

test('the page about secrets says how each is changed', () => {
  const secrets = Object.entries(settings)
    .filter(([name, { isSecret }]) => isSecret && !name.endsWith('_URL'))
    .map(([name]) => name);
  expect(secrets).toContain('WEBHOOK_SECRET');
  expect(missing(sectionOf('secrets', 'Change a secret'), secrets)).toEqual([]);
});

test('the page about backups names each file of one', () => {
  const files = textOf('cli/backup.ts').matchAll(/^ {2}'([\w.-]+)',$/gm);
  const parts = [...files].map(([, name = '']) => name);
  expect(parts.length).toBeGreaterThan(5);
  expect(missing(sectionOf('backup', 'Back up the embedded service'), parts)).toEqual([]);
});

test('the page about webhooks says when each type of message is sent', () => {
  const section = sectionOf('webhooks', 'What is sent');
  expect(missing(section, SUBSCRIBABLE_TYPES)).toEqual([]);
});
