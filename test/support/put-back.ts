/** The event log of a service in this process, put back to an earlier state of it. */
import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type CommandResponse, type InProcess, token } from './service-in-process.ts';

/** Copies the log as it is now. */
export const backUp = ({ dataDir }: InProcess, name = 'backup'): void => {
  const log = new DatabaseSync(join(dataDir, 'events.sqlite'), { readOnly: true });
  rmSync(join(dataDir, `events.${name}`), { force: true });
  log.exec(`VACUUM INTO '${join(dataDir, `events.${name}`)}'`);
  log.close();
};

/** Starts the service again over the copy. Read models are filled from the events, as after every restore. */
export const putBack = (service: InProcess, name = 'backup'): Promise<void> =>
  service.restart((folder) => {
    for (const file of ['events.sqlite', 'read-models.sqlite'])
      for (const end of ['', '-wal', '-shm']) rmSync(join(folder, file + end), { force: true });
    copyFileSync(join(folder, `events.${name}`), join(folder, 'events.sqlite'));
  });

/** An operator opens the service for money. */
export const acknowledge = async (
  service: InProcess,
  merchant = '*',
  scope = 'ops:admin',
): Promise<CommandResponse> =>
  service.ask('POST', '/ops/v1/reconcile/acknowledge', undefined, {
    token: await token(merchant, scope),
  });
