/** docs/settings.md lists the settings that the code parses, with their defaults. */
import { expect, test } from '@jest/globals';
import { settings } from '../../shared/runtime/settings/table.ts';
import { settingsPage } from '../support/settings-page.ts';

test('docs/settings.md has every setting in the order of the table, with the default that is parsed', () => {
  const parsed = Object.entries(settings);
  expect(settingsPage.map(({ name }) => name)).toEqual(parsed.map(([name]) => name));
  for (const [at, [name, { byDefault }]] of parsed.entries()) {
    if (typeof byDefault === 'string')
      expect([name, settingsPage[at]?.default]).toEqual([name, byDefault]);
  }
});
