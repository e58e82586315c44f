/** The drivers of the payment-views port; test/contract/payment-views.test.ts runs over them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PaymentViews } from '../../shared/payment-views/port.ts';
import { openSqliteViews } from '../../shared/payment-views/sqlite.ts';

export type ViewStore = {
  /** Opens the same views, as the next start of the service would. */
  open(): Promise<PaymentViews>;
  /** Takes them away for good. */
  remove(): Promise<void>;
};

export type ViewDriver = {
  name: string;
  /** Why this driver cannot be tested here; printed in place of its tests. */
  skip?: string;
  /** An empty store of its own. */
  make(): Promise<ViewStore>;
};

/** A folder below the system's own, gone at `remove`. */
export const temporaryFolder = (): { path: string; remove(): void } => {
  const path = mkdtempSync(join(tmpdir(), 'payments-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
};

export const viewDrivers: ViewDriver[] = [
  {
    name: 'sqlite',
    make: async () => {
      const folder = temporaryFolder();
      return {
        open: async () => openSqliteViews({ file: join(folder.path, 'views.db') }),
        remove: async () => folder.remove(),
      };
    },
  },
];
