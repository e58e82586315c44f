/** Takes keys of the store in a folder as fast as it gets them, and adds the id of each to a file, until it is killed. */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { openKeyStore } from '../../personal-data/open.ts';

const [, , folder = '', kek = '', file = ''] = process.argv;
const keys = await openKeyStore({
  config: { mongoUrl: undefined, personalData: { kek, previousKek: undefined } },
  fileOf: (name) => join(folder, name),
  takes: true,
});
for (;;) appendFileSync(file, `${(await keys.take(30_000)).id}\n`);
