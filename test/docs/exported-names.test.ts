/** A name that a search finds means one thing: two folders export no name of two meanings. */
import { expect, test } from '@jest/globals';
import { projectFiles, textOf } from '../support/project-files.ts';

const SOURCE =
  /^(shared|providers|webhooks|topics|audit|personal-data|command-api|projector|query-api|embedded|cli|console)\/.*\.(ts|js)$/;
const EXPORTED = /^export (?:async )?(?:const|function\*?|class|type|let) (\w+)/gm;

/** The same part of each driver, and the type and schema of one thing. */
const REPEATED = ['createReader', 'createWriter', 'correct', 'PaymentResponse', 'PaymentStatus'];
/** Too little for a name where it is imported. */
const TOO_SHORT = ['Place', 'Part', 'Known', 'Compared', 'Options'];

const exports = projectFiles
  .filter((file) => SOURCE.test(file))
  .flatMap((file) => {
    const names = [...textOf(file).matchAll(EXPORTED)].flatMap(([, name]) => name ?? []);
    return [...new Set(names)].map((name) => ({ name, file }));
  });

test('each exported name stands in one file', () => {
  const byName = Map.groupBy(exports, ({ name }) => name);
  const repeated = [...byName].filter(([, places]) => places.length > 1);
  expect(repeated.map(([name]) => name).sort()).toEqual([...REPEATED].sort());
});

test('no exported type has a name that says nothing elsewhere', () => {
  expect(exports.filter(({ name }) => TOO_SHORT.includes(name))).toEqual([]);
});
