import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach } from '@jest/globals';

/** A folder below the system's own, gone at `remove` or at the end of a `using`. */
export const temporaryFolder = () => {
  const path = mkdtempSync(join(tmpdir(), 'payments-'));
  const remove = (): void => rmSync(path, { recursive: true, force: true });
  return { path, remove, [Symbol.dispose]: remove };
};

/** The path of a folder for all tests of a file, gone after them. */
export const folderOfTests = (): string => {
  const { path, remove } = temporaryFolder();
  afterAll(remove);
  return path;
};

/** The path of another folder for each test; they are gone after all of them. */
export const folderOfEachTest = () => {
  const all = folderOfTests();
  const folder = { path: all };
  beforeEach(() => {
    folder.path = mkdtempSync(join(all, 'test-'));
  });
  return folder;
};
