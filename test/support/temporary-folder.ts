import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder below the system's own, gone at `remove` or at the end of a `using`. */
export const temporaryFolder = () => {
  const path = mkdtempSync(join(tmpdir(), 'payments-'));
  const remove = (): void => rmSync(path, { recursive: true, force: true });
  return { path, remove, [Symbol.dispose]: remove };
};
