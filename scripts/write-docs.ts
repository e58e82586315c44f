/**
 * `npm run docs:openapi`: writes what is served at /openapi.json, and docs/errors.md.
 * `npm run docs:topics`: writes docs/schemas and docs/asyncapi.yaml.
 */
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
