/**
 * How a golden folder is opened, and what it was made with: earlier code lived through every event type and
 * every state of a payment, endpoint and operation, and kept each request with its response.
 */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { SECRET } from '../support/service-in-process.ts';
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

/** A data folder as it was packed; gone at `remove`. */
export const unpack = (archive: string): ReturnType<typeof temporaryFolder> => {
  const folder = temporaryFolder();
  execFileSync('tar', ['-xzf', archive, '-C', folder.path]);
  return folder;
};

/** One request of a merchant's, with what it was answered. */
export type Recorded = {
  merchant: string;
  path: string;
  key: string | undefined;
  body: unknown;
  status: number;
  headers: Record<string, unknown>;
  text: string;
};

const KEPT_HEADERS = ['etag', 'location', 'retry-after', 'idempotent-replayed', 'content-type'];

export const keptHeaders = (headers: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    KEPT_HEADERS.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])),
  );

/** The endpoint that is disabled from its first moment on, so that all its messages wait. */
export const WAITS = 'waits';
export const EVERY_TYPE = [
  'created',
  'authorized',
  'captured',
  'voided',
  'refunded',
  'failed',
  'capture_failed',
  'void_failed',
  'refund_failed',
  'authorization_expired',
  'refund_reversed',
  'disputed',
  'dispute_closed',
].map((name) => `payment.${name}`);

/** Secrets of the endpoints, by their id. */
export type Secrets = Record<string, string>;

/** The key of a sale that only the provider knows. */
export const LOST = 'lost-by-the-restore';
