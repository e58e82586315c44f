/** docs/settings.md lists the settings that the code parses, with their defaults. */
import { expect, test } from '@jest/globals';
import { settings } from '../../shared/runtime/settings/table.ts';
import { settingsPage } from '../support/settings-page.ts';

test('docs/settings.md has every setting once, with the default that is parsed', () => {
  const parsed = Object.entries(settings);
  expect(settingsPage.map(({ name }) => name).sort()).toEqual(parsed.map(([name]) => name).sort());
  for (const [name, { byDefault }] of parsed) {
    const row = settingsPage.find((one) => one.name === name);
    if (typeof byDefault === 'string') expect([name, row?.default]).toEqual([name, byDefault]);
  }
});
