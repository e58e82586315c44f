/** The table of docs/settings.md. */
import { readFileSync } from 'node:fs';

const page = readFileSync(new URL('../../docs/settings.md', import.meta.url), 'utf8');

export const settingsPage = [...page.matchAll(/^\| `([A-Z_]+)` \| (.*?) \| (.*) \|$/gm)].map(
  ([, name = '', byDefault = '', meaning = '']) => ({ name, default: byDefault, meaning }),
);
