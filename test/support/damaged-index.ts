/** Damage to an index of a stopped service's read models, as a disk does it: no error says so. */
import { readFileSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

const PAGE_BYTES = 4096;
/** Of an index's leaf: its kind, no free block, no cell, its content at the end of the page. */
const EMPTY_LEAF = Buffer.from([0x0a, 0, 0, 0, 0, PAGE_BYTES >> 8, 0, 0]);

const inFile = (file: string, change: (bytes: Buffer) => void): void => {
  const bytes = readFileSync(file);
  change(bytes);
  writeFileSync(file, bytes);
};

/** Puts an empty page in the place of an index's root. */
export const emptyIndex = (file: string, index: string): void => {
  const db = new DatabaseSync(file);
  const found = db.prepare('SELECT rootpage FROM sqlite_schema WHERE name = ?').get(index);
  db.close();
  const root = (Number(found?.rootpage) - 1) * PAGE_BYTES;
  inFile(file, (bytes) => EMPTY_LEAF.copy(bytes.fill(0, root, root + PAGE_BYTES), root));
};

/** Changes one bit of the index entry that holds these texts one after the other. */
export const flipInIndex = (file: string, ...columns: string[]): void =>
  inFile(file, (bytes) => {
    // A page that was split keeps what it had in its free space.
    const text = columns.join('');
    for (let at = bytes.indexOf(text); at !== -1; at = bytes.indexOf(text, at + 1))
      bytes.writeUInt8((bytes[at] ?? 0) ^ 1, at);
  });
