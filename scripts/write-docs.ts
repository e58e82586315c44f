/** `npm run docs:topics`: writes docs/schemas and docs/asyncapi.yaml. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generatedTopicDocs } from './topics/generated.ts';

const ROOT = join(import.meta.dirname, '..');

for (const [file, text] of Object.entries(generatedTopicDocs())) {
  writeFileSync(join(ROOT, file), text);
  process.stderr.write(`payments: wrote ${file}\n`);
}
