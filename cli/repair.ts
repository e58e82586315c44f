/** `payments repair`: the rows of a stopped folder's log in a new file, with indexes made of them. */
import { chownSync, linkSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import type { AuditVerification } from '../audit/contract.ts';
import { describeBreak } from '../shared/event-store/chain.ts';
import { copyRows } from '../shared/event-store/sqlite/database.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import { syncPath } from '../shared/runtime/private-files.ts';
import { type Client, jsonOf } from './client.ts';
import { dataOption, verb } from './options.ts';
import { CommandFailed, counted, failOnMisfit, note, print } from './output.ts';
import { EVENTS, hasWaitingPages, lockFolder, openStoppedFolder } from './stopped-folder.ts';

const repair = async ({ data: folder }: { data: string }): Promise<void> => {
  process.umask(0o077);
  const [file, draftFolder] = [join(folder, EVENTS), join(folder, '.repaired')];
  const [draft, kept] = [join(draftFolder, EVENTS), `${file}.damaged`];
  const lock = lockFolder(folder, 'repair');
  let repaired: Client;
  try {
    const { uid, gid } = statSync(file);
    rmSync(draftFolder, { recursive: true, force: true });
    mkdirSync(draftFolder);
    const events = copyRows(file, draft);
    repaired = await openStoppedFolder(draftFolder);
    const { broken } = await jsonOf<AuditVerification>(repaired.get('/audit/v1/verify'));
    if (broken !== undefined) throw new Error(describeBreak(broken));
    if (hasWaitingPages(file)) throw new Error('its write-ahead log could not be taken in');
    chownSync(draft, uid, gid);
    await syncPath(draft);
    linkSync(file, kept);
    renameSync(draft, file);
    await syncPath(folder);
    print(`${file}  ${counted(events)} events, whose chain holds, with new indexes`);
    print(`${kept}  the file as it was`);
    note('Next: start the service, then payments verify --all and payments reconcile');
  } catch (error) {
    const next = 'docs/operations.md, A damaged event log, has the next step';
    throw new CommandFailed(`${file} is as it was: ${reasonOf(error)}; ${next}`, 3);
  } finally {
    rmSync(draftFolder, { recursive: true, force: true });
    lock.release();
  }
  failOnMisfit(repaired);
};

export const repairCommand = (): Command =>
  verb('repair', 'payments repair --data ./data')
    .description("Makes the indexes of a stopped folder's log anew, where its events are whole.")
    .addOption(dataOption('the data folder of a stopped service').makeOptionMandatory())
    .action(repair);
