import { join } from 'node:path';
import { openSqliteReadModels } from '../../shared/read-models/sqlite/read-models.ts';
import type { SqliteReadModelsOptions } from '../../shared/read-models/sqlite/served-file.ts';
import { keptThread } from './once/kept-threads.ts';

/** The secret under which tests that open read models by themselves make the checks of documents. */
export const READ_MODEL_SECRETS = ['the idempotency secret of the tests'] as const;

export const readModelsAt = (file: string, more: Partial<SqliteReadModelsOptions> = {}) =>
  openSqliteReadModels({ file, secrets: READ_MODEL_SECRETS, newThread: keptThread, ...more });

export const readModelsIn = (folder: string, name = 'read-models.sqlite') =>
  readModelsAt(join(folder, name));
