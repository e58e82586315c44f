/** Files that only their owner may use: their modes, and what a crash may leave behind. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from '@jest/globals';
import {
  addPrivateFile,
  ensurePrivateFile,
  replacePrivateFile,
} from '../../shared/runtime/private-files.ts';
import { folderOfEachTest } from '../support/temporary-folder.ts';

const folder = folderOfEachTest();
let file: string;
beforeEach(() => {
  file = join(folder.path, 'secret');
});

const read = () => readFileSync(file, 'utf8');
const mode = () => statSync(file).mode & 0o777;

describe('private files', () => {
  test('a file is replaced, and the folder holds no other file afterwards', async () => {
    await replacePrivateFile(file, 'old');
    await replacePrivateFile(file, 'new');
    expect([read(), mode(), readdirSync(folder.path)]).toEqual(['new', 0o600, ['secret']]);
  });

  test('a draft that a crash left behind gives the file neither its text nor its mode', async () => {
    writeFileSync(`${file}.new`, 'a longer text than the new one', { mode: 0o644 });
    await replacePrivateFile(file, 'new');
    expect([read(), mode()]).toEqual(['new', 0o600]);
  });

  test('of twenty writers that add a file at once one wins, and each of them then reads a whole file', async () => {
    const texts = Array.from({ length: 20 }, (_, n) => `text ${n} `.repeat(1000));
    const found = await Promise.all(texts.map((text) => addPrivateFile(file, text).then(read)));
    expect(new Set(found).size).toBe(1);
    expect(texts).toContain(found[0]);
    expect([mode(), readdirSync(folder.path)]).toEqual([0o600, ['secret']]);
  });

  test('a file for SQLite keeps its content, and others lose their rights to it', () => {
    writeFileSync(file, 'rows', { mode: 0o644 });
    ensurePrivateFile(file);
    expect([read(), mode()]).toEqual(['rows', 0o600]);
  });

  test('a missing folder is an error', async () => {
    const missing = join(folder.path, 'missing', 'secret');
    await expect(replacePrivateFile(missing, 'text')).rejects.toThrow('ENOENT');
    await expect(addPrivateFile(missing, 'text')).rejects.toThrow('ENOENT');
  });
});
