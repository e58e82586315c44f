/** `payments restore <copy>`: puts a backup that was checked in the place of the data folder (gaps §17). */
import {
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Command } from 'commander';
import type { AuditVerification } from '../audit/contract.ts';
import { headFileOf } from '../audit/seals/key.ts';
import { isOwn } from '../embedded/data-folder.ts';
import { describeBreak } from '../shared/event-store/chain.ts';
import { makeDataDir, SERVICE_LOCK, syncPath } from '../shared/runtime/private-files.ts';
import { copyParts, EVENTS, embeddedFolder, whyOf } from './backup.ts';
import { jsonOf } from './client.ts';
import { verb } from './options.ts';
import { CommandFailed, counted, note, print } from './output.ts';
import { keyPlaceIn } from './settings.ts';
import { lockFolder, openStoppedFolder } from './stopped-folder.ts';

const REPLACED = 'replaced.';

/** Throws Error where the log is not whole, or was sealed by another key. */
const checkLog = async (folder: string) => {
  const { get, misfit: unsealed } = await openStoppedFolder(folder, '*', true);
  const { broken, events } = await jsonOf<AuditVerification>(get('/audit/v1/verify'));
  const misfit = broken === undefined ? unsealed : describeBreak(broken);
  if (misfit !== undefined) throw new Error(misfit);
  using log = new DatabaseSync(join(folder, EVENTS), { readOnly: true });
  const last = log.prepare('SELECT text FROM events ORDER BY position DESC LIMIT 1').get();
  const { time } = JSON.parse(String(last?.text)) as { time: string };
  return { events, time };
};

/** Within the folder, which may be a volume of its own. The lock stays where it is. */
const swap = (folder: string, draft: string, aside: string): void => {
  const isMoved = (name: string) =>
    isOwn(name) && !name.startsWith(SERVICE_LOCK) && !name.startsWith(REPLACED);
  for (const name of readdirSync(folder).filter(isMoved))
    renameSync(join(folder, name), join(aside, name));
  for (const name of readdirSync(draft)) renameSync(join(draft, name), join(folder, name));
};

const restore = async (given: string): Promise<void> => {
  process.umask(0o077);
  const [folder, copy] = [embeddedFolder(), resolve(given)];
  if (!existsSync(join(copy, EVENTS)))
    throw new CommandFailed(`${copy} holds no ${EVENTS}; name a folder of payments backup`);
  const { uid, gid } = statSync(existsSync(folder) ? folder : copy);
  makeDataDir(folder);
  const lock = lockFolder(folder, 'restore');
  const end = `${REPLACED}${new Date().toISOString().replace(/\W/g, '')}`;
  const [draft, aside] = [join(folder, '.restored'), join(folder, end)];
  const head = headFileOf(keyPlaceIn(folder));
  try {
    rmSync(draft, { recursive: true, force: true });
    mkdirSync(draft);
    await copyParts(copy, draft);
    const { events, time } = await checkLog(draft);
    if (existsSync(head)) linkSync(head, `${head}.${end}`);
    mkdirSync(aside);
    const files = readdirSync(draft).map((name) => join(draft, name));
    for (const path of [folder, join(folder, SERVICE_LOCK), aside, ...files])
      chownSync(path, uid, gid);
    swap(folder, draft, aside);
    // Last: until then no start takes a folder without a log for the right one.
    rmSync(head, { force: true });
    await syncPath(folder);
    const hours = ((Date.now() - Date.parse(time)) / 3_600_000).toFixed(1);
    print(`${folder}  ${counted(events)} events, whose chain holds`);
    print(`  the last one is of ${time}, ${hours} hours ago`);
    print(`  what was there is in ${aside}`);
  } catch (error) {
    const kept = existsSync(aside) ? `what was there is in ${aside}` : `${folder} is as it was`;
    const next = 'docs/backup.md';
    throw new CommandFailed(`nothing is restored, and ${kept}: ${whyOf(error)}; ${next}`, 3);
  } finally {
    rmSync(draft, { recursive: true, force: true });
    lock.release();
  }
  note(
    'Next: start the service. Merchants can only read until you have compared it with the provider: payments verify --all, payments reconcile --all, then payments reconcile --acknowledge',
    'Where events were published after the copy: docs/backup.md',
  );
};

export const restoreCommand = (): Command =>
  verb('restore', 'payments restore /backups/payments-20261121T000000Z')
    .description(
      'Checks a backup, and puts it in the place of the stopped data folder, which it keeps.',
    )
    .argument('<copy>', 'a folder that payments backup made; it stays as it is')
    .action(restore);
