/** `npm run docs:openapi`: writes what is served at /openapi.json and what docs/errors.md says. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generatedDocs } from './openapi/generated.ts';

const ROOT = join(import.meta.dirname, '..');

for (const [file, text] of Object.entries(await generatedDocs())) {
  writeFileSync(join(ROOT, file), text);
  process.stderr.write(`payments: wrote ${file}\n`);
}
process.exit(0);
