/** The table of what was tried on which version is what the contract suites printed (docs/engines-tried.json). */
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import tried from '../../docs/engines-tried.json' with { type: 'json' };
import { withTable } from '../../tools/engines/tried.ts';
import { textOf } from '../support/project-files.ts';

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
