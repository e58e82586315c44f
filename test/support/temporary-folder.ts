import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder below the system's own, gone at `remove`. */
export const temporaryFolder = (): { path: string; remove(): void } => {
  const path = mkdtempSync(join(tmpdir(), 'payments-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
};
