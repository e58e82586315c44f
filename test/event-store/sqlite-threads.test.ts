/**
 * The thread of the log takes modules of this project and of Node alone: the schemas and their package
 * would double what a start of the log costs.
 */
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';

const SHARED = new URL('../../shared/', import.meta.url);

/** Every module that `entry` loads, itself with them; imports of types alone are gone when it runs. */
const loadedBy = (entry: URL, found = new Set<string>()): Set<string> => {
  if (found.has(entry.href)) return found;
  found.add(entry.href);
  const source = readFileSync(entry, 'utf8');
  for (const [, name = ''] of source.matchAll(
    /^(?:import|\}|export)(?! type)[^;]*? from '([^']+)';/gm,
  )) {
    if (name.startsWith('.')) loadedBy(new URL(name, entry), found);
    else found.add(name);
  }
  return found;
};

test('the thread of the log loads no package', () => {
  const loaded = [...loadedBy(new URL('event-store/sqlite/worker.ts', SHARED))];
  expect(loaded.length).toBeGreaterThan(1);
  expect(loaded.filter((name) => !/^(file|node):/.test(name))).toEqual([]);
});
