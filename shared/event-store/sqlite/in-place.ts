/**
 * Whether the names of an open file still lead to it. SQLite goes on in a file that was deleted or moved
 * away, and what it commits there is gone with the process, or in a folder that nobody starts from.
 */
import { statSync } from 'node:fs';

/** The file and its write-ahead log, which is there for as long as the file is open. */
const SUFFIXES = ['', '-wal'];

/** Undefined where nothing can be said to be there. */
const identityOf = (path: string): string | undefined => {
  try {
    // Whole: of a number of 64 bits, as overlayfs and FUSE give them, a double drops the last ones.
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev} ${ino}`;
  } catch {
    return undefined;
  }
};

/** Notes what the names lead to now. The function that it gives compares, in a few microseconds. */
export function notePlace(file: string): () => boolean {
  const paths = SUFFIXES.map((suffix) => `${file}${suffix}`);
  const noted = paths.map(identityOf);
  return () => paths.every((path, at) => identityOf(path) === noted[at]);
}
