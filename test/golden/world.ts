/** How a golden folder is opened: with these settings, and a provider that says nothing of what is open. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { Provider } from '../../command-api/provider/port.ts';
import { type InProcess, openInProcess, SECRET } from '../support/in-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

export const goldenFile = (name: string): string => join(import.meta.dirname, name);

/** The address that the waiting endpoint was registered with; no other test listens there. */
export const RECEIVER = { host: '127.77.19.4', port: 39_117 };

export const SETTINGS = {
  JWT_SECRET: SECRET,
  IDEMPOTENCY_SECRET: 'the second secret of the golden folder, 32 bytes',
  IDEMPOTENCY_SECRET_PREVIOUS: 'the first secret of the golden folder, 32 bytes',
  MERCHANTS_FILE: goldenFile('merchants.json'),
  RECOVERY_DELAYS_MS: '86400000',
  SEAL_EVENTS_MAX: '40',
  VERIFY_INTERVAL_MS: '0',
  RECONCILE_INTERVAL_MS: '0',
  WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
};

export const pack = (folder: string, archive: string): void => {
  execFileSync('tar', ['-czf', archive, '-C', folder, '.']);
};

/** A data folder as it was packed; gone at `remove`. */
export const unpack = (archive: string): ReturnType<typeof temporaryFolder> => {
  const folder = temporaryFolder();
  execFileSync('tar', ['-xzf', archive, '-C', folder.path]);
  return folder;
};

/** Opens a service over a copy of a folder. */
export const openOver = async (
  folder: string | undefined,
  settings: Record<string, string> = {},
  provider?: (own: Provider) => Provider,
): Promise<InProcess> =>
  openInProcess({ ...SETTINGS, ...settings }, undefined, {
    ...(folder !== undefined && { folder }),
    ...(provider !== undefined && { provider }),
  });
