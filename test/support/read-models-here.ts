import { join } from 'node:path';
import { openSqliteReadModels } from '../../shared/read-models/sqlite/read-models.ts';

/** The secret under which tests that open read models by themselves make the checks of documents. */
export const READ_MODEL_SECRETS = ['the idempotency secret of the tests'] as const;

export const readModelsIn = (folder: string, name = 'read-models.sqlite') =>
  openSqliteReadModels({ file: join(folder, name), secrets: READ_MODEL_SECRETS });
