/** docs/settings.md is what operators read: it must say what the code does. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { settingsTable } from '../../shared/runtime/settings.ts';

test('the settings page shows the very table that the environment is parsed by', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/settings.md'), 'utf8');
  const rows = [...page.matchAll(/^\| `([A-Z_]+)` \| (.*?) \| (.*) \|$/gm)];
  const shown = rows.map(([, name, defaultText, meaning]) => ({
    name,
    default: defaultText,
    meaning,
  }));
  expect(shown).toEqual(settingsTable);
});
