/** `npm run docs:openapi`: /openapi.json, docs/errors.md; `docs:topics`: docs/schemas, docs/asyncapi.yaml. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

const files =
  process.argv[2] === 'topics'
    ? (await import('./topics/generated.ts')).generatedTopicDocs()
    : await (await import('./openapi/generated.ts')).generatedDocs();

for (const [file, text] of Object.entries(files)) {
  writeFileSync(join(import.meta.dirname, '..', file), text);
  process.stderr.write(`payments: wrote ${file}\n`);
}
process.exit(0);
