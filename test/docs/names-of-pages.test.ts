/** Tables that an operator or a merchant relies on name everything that there is. */
import { expect, test } from '@jest/globals';
import { settings } from '../../shared/runtime/settings/table.ts';
import { SUBSCRIBABLE_TYPES } from '../../shared/webhooks/message.ts';
import { projectFiles, textOf } from '../support/project-files.ts';

const sectionOf = (page: string, title: string): string =>
  textOf(`docs/${page}.md`).split(`## ${title}\n`)[1]?.split(/^## /m)[0] ?? '';
const missing = (section: string, names: readonly string[]): string[] =>
  names.filter((name) => !section.includes(`\`${name}\``));

test('the operators page says how each secret is changed', () => {
  const secrets = Object.entries(settings)
    .filter(([name, { isSecret }]) => isSecret && !name.endsWith('_URL'))
    .map(([name]) => name);
  expect(secrets).toContain('WEBHOOK_SECRET');
  const section = sectionOf('operations', 'Secrets and their rotation');
  expect(missing(section, secrets)).toEqual([]);
});

test('the operators page names each file of a backup', () => {
  const parts = [...textOf('cli/backup.ts').matchAll(/^ {2}'([\w.-]+)',$/gm)];
  expect(parts.length).toBeGreaterThan(5);
  const section = sectionOf('operations', 'Backup and restore');
  expect(
    missing(
      section,
      parts.map(([, name = '']) => name),
    ),
  ).toEqual([]);
});

test('the page about webhooks says when each type of message is sent', () => {
  const section = sectionOf('webhooks', 'What is sent');
  expect(missing(section, SUBSCRIBABLE_TYPES)).toEqual([]);
});

test('no page has the MongoDB database emptied: it holds how far topics and webhooks are, too', () => {
  const emptied = /empt(y|ies|ied) the (MongoDB )?database|remove `payments_read-models`/i;
  const pages = projectFiles.filter((path) => path.endsWith('.md'));
  expect(pages.filter((path) => emptied.test(textOf(path)))).toEqual([]);
});
