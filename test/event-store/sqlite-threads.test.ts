/**
 * The thread of the log takes modules of this project and of Node alone: the schemas and their package
 * would double what a start of the log costs.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { commandLogJobs } from '../../command-api/jobs.ts';
import { projectorJobs, projectorLogJobs } from '../../projector/jobs.ts';
import { queryJobs, queryLogJobs } from '../../query-api/jobs.ts';

const ROOT = join(import.meta.dirname, '../..');

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

test('every job is in a list, under its own name', async () => {
  const lists = { ...commandLogJobs, ...projectorLogJobs, ...projectorJobs, ...queryLogJobs };
  const loaded = Object.entries({ ...lists, ...queryJobs }).map(async ([name, load]) => {
    expect((await load()).name).toBe(name);
    return name;
  });
  const sources = globSync('{shared,audit,command-api,projector,query-api}/**/*.ts', { cwd: ROOT });
  const jobs = sources.flatMap((file) => [
    ...readFileSync(join(ROOT, file), 'utf8').matchAll(/^export const (\w+): (?:Log)?Job</gm),
  ]);
  expect((await Promise.all(loaded)).sort()).toEqual(jobs.map(([, name]) => name).sort());
});
