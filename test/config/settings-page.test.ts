/** docs/settings.md holds the table of settings that the code parses. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { settingsTable } from '../../shared/runtime/settings/table.ts';

test('docs/settings.md shows the table of settings by which the environment is parsed', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/settings.md'), 'utf8');
  const rows = [...page.matchAll(/^\| `([A-Z_]+)` \| (.*?) \| (.*) \|$/gm)];
  const shown = rows.map(([, name, defaultText, meaning]) => ({
    name,
    default: defaultText,
    meaning,
  }));
  expect(shown).toEqual(settingsTable);
});
