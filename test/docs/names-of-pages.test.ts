/** Tables that an operator or a merchant relies on name everything that there is. */
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import tried from '../../docs/engines-tried.json' with { type: 'json' };
import { settings } from '../../shared/runtime/settings/table.ts';
import { withTable } from '../../tools/engines/tried.ts';
import { SUBSCRIBABLE_TYPES } from '../../webhooks/message.ts';
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

test('the page shows each run, as it was printed, and no other', () => {
  const page = textOf('docs/reliability.md');
  expect(withTable(page, tried)).toBe(page);
  const [first, ...others] = tried;
  expect(first?.suites).toMatch(/^\d+ passed, \d+ failed, \d+ skipped$/);
  expect(withTable(page, others)).not.toBe(page);
});

test('the page names the engines that the compose files start', () => {
  const named = ['docker-compose.yml', 'docker-compose.kurrentdb.yml'].flatMap((file) => {
    const { services } = parse(textOf(file), {
      merge: true,
      customTags: [
        { tag: '!override', collection: 'map', resolve: (map) => map },
        { tag: '!override', collection: 'seq', resolve: (seq) => seq },
      ],
    });
    return ['eventstoredb', 'mongodb', 'kafka'].flatMap((name) => services[name]?.image ?? []);
  });
  const page = textOf('docs/several-processes.md');
  expect(named).toHaveLength(4);
  for (const image of named) {
    const [, version = ''] = /:([0-9.]+)/.exec(image) ?? [];
    expect(page).toContain(version);
  }
});
