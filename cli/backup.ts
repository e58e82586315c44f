/**
 * `payments backup <folder>` copies the data folder while the service runs; no checkpoint is ahead of the log
 * (ADR-0078). `payments restore <copy>` puts a checked backup in the place of the folder (gaps §17), `payments
 * repair` the rows of a stopped folder's log in a new file, with indexes made of them.
 */
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { backup as copyDatabase, DatabaseSync } from 'node:sqlite';
import type { Command } from 'commander';
import type { AuditVerification } from '../audit/contract.ts';
import { headFileOf } from '../audit/seals/key.ts';
import { isOwn } from '../embedded/data-folder.ts';
import { KEYS_FILE, LAST_KEY_BACKUP, MASTER_KEY_FILE } from '../personal-data/open.ts';
import { describeBreak } from '../shared/event-store/chain.ts';
import { copyRows } from '../shared/event-store/sqlite/database.ts';
import { isDiskFull, reasonOf } from '../shared/runtime/error-text.ts';
import {
  LAST_BACKUP,
  makeDataDir,
  replacePrivateFile,
  SERVICE_LOCK,
  syncPath,
} from '../shared/runtime/private-files.ts';
import { type Client, jsonOf } from './client.ts';
import { dataOption, type Format, formatted, verb } from './options.ts';
import { CommandFailed, countOf, failOnMisfit, note, print, printJson } from './output.ts';
import { keyPlaceIn, readSettings } from './settings.ts';
import { EVENTS, hasWaitingPages, lockFolder, openStoppedFolder } from './stopped-folder.ts';

/** In this order. Read models are rebuilt from the events; a copy with the keys would keep what is erased later. */
const PARTS = [
  // Before the events: a checkpoint behind the log sends messages twice, one ahead stops the relay.
  'relay-checkpoint.json',
  // Copied before the events: an endpoint behind the log only gets messages twice.
  'webhook-deliveries.sqlite',
  'idempotency.secret',
  'webhook.secret',
  'signing-key.json',
  // Only this key makes the log's next seals. Its `.head` is not copied: it may be ahead.
  'sealing-key.pem',
  // Left by an interrupted key rotation; the copied log may already refer to it.
  'sealing-key.pem.next',
  'events.sqlite',
  // Copied after the events, so recovery finds here every operation whose intent was copied.
  'provider-ledger.sqlite',
];

/** In one step: a commit between two steps would make SQLite start the copy again. */
const ALL_PAGES = 2 ** 31 - 1;
const BUSY_MS = 5_000;

const copyLive = async (from: string, to: string): Promise<void> => {
  using source = new DatabaseSync(from, { readOnly: true, timeout: BUSY_MS });
  await copyDatabase(source, to, { rate: ALL_PAGES });
};

const checkDatabase = (file: string): void => {
  using copy = new DatabaseSync(file);
  // Unlike a quick check it compares indexes with rows.
  const found = copy.prepare('PRAGMA integrity_check(1)').get()?.integrity_check;
  if (found !== 'ok')
    throw new Error(`${basename(file)} is damaged (${found}): docs/runbook.md, LOG_BROKEN`);
  // Makes the copy one file, without a write-ahead log.
  copy.exec('PRAGMA journal_mode = DELETE');
};

const eventsIn = (file: string): number => {
  using events = new DatabaseSync(file, { readOnly: true });
  return Number(events.prepare('SELECT count(*) AS count FROM events').get()?.count);
};

/** Each file for its owner alone, on disk, and each database checked. Throws Error. */
const copyParts = async (from: string, to: string, parts = PARTS) => {
  const files: { name: string; bytes: number }[] = [];
  for (const name of parts) {
    const source = join(from, name);
    if (!existsSync(source)) continue;
    const target = join(to, name);
    const isDatabase = name.endsWith('.sqlite');
    if (isDatabase) await copyLive(source, target);
    else copyFileSync(source, target);
    chmodSync(target, 0o600);
    if (isDatabase) checkDatabase(target);
    await syncPath(target);
    files.push({ name, bytes: statSync(target).size });
  }
  await syncPath(to);
  return files;
};

const whyOf = (error: unknown): string =>
  isDiskFull(error) ? 'the disk is full' : reasonOf(error);

/** Copies under another name first, so that an interrupted copy never looks whole. */
const copyFolder = async (from: string, to: string, parts: string[]) => {
  const partial = join(dirname(to), `.${basename(to)}.partial`);
  try {
    makeDataDir(dirname(to));
    rmSync(partial, { recursive: true, force: true });
    mkdirSync(partial, { mode: 0o700 });
    const files = await copyParts(from, partial, parts);
    const events = parts === PARTS ? eventsIn(join(partial, EVENTS)) : undefined;
    renameSync(partial, to);
    await syncPath(dirname(to));
    return { folder: to, events, files };
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    throw new CommandFailed(
      `the backup failed and left no files behind: ${whyOf(error)}; see payments doctor`,
    );
  }
};

/** DATA_DIR. Throws CommandFailed where the events are not in it. */
const embeddedFolder = (): string => {
  const { dataDir, eventStoreDbUrl } = readSettings();
  if (eventStoreDbUrl === undefined) return dataDir;
  throw new CommandFailed(
    'EVENTSTOREDB_URL is set, so the events are not in DATA_DIR; to back up the servers see "Back up several processes" in docs/backup.md',
  );
};

const runBackup = async (
  target: string,
  { format, keys = false }: { format: Format; keys?: boolean },
): Promise<void> => {
  process.umask(0o077);
  const dataDir = keys ? readSettings().dataDir : embeddedFolder();
  const folder = resolve(target);
  if (existsSync(folder))
    throw new CommandFailed(
      `${folder} exists already, and a backup replaces nothing; name another folder`,
    );
  if (!existsSync(join(dataDir, keys ? KEYS_FILE : EVENTS)))
    throw new CommandFailed(
      `DATA_DIR: ${dataDir} holds no ${keys ? KEYS_FILE : 'events'}; see payments doctor`,
    );
  const copied = await copyFolder(dataDir, folder, keys ? [KEYS_FILE] : PARTS);
  const noted = join(dataDir, keys ? LAST_KEY_BACKUP : LAST_BACKUP);
  await replacePrivateFile(noted, '').catch((error: unknown) =>
    note(`its time could not be noted in ${dataDir}, so alerts do not know of it: ${whyOf(error)}`),
  );
  if (format === 'json') return printJson(copied);
  const { events, files } = copied;
  print(events === undefined ? folder : `${folder}  ${countOf(events)} events`);
  for (const { name, bytes } of files) print(`  ${name}  ${countOf(bytes)} bytes`);
  if (keys)
    return note(
      'Keep it apart from the copies of the log and from the master key, and for 30 days at most: docs/backup.md',
    );
  const secrets = files.flatMap(({ name }) => (name.endsWith('.sqlite') ? [] : [name]));
  if (secrets.length > 0)
    note(`It holds secrets (${secrets.join(', ')}): keep it as safe as the service.`);
  note(`To restore it: stop the service, then payments restore ${folder}`);
};

export const backupCommand = (): Command =>
  formatted('backup', 'payments backup /backups/payments-2026-11-21')
    .description('Copies the data folder of the embedded store while the service runs.')
    .argument('<folder>', 'the folder to write; must not exist yet')
    .option('--keys', 'copy the keys of personal data alone, which no other backup has')
    .action(runBackup);

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
  // The folder's own keys know what was erased since the copy.
  const kept = [SERVICE_LOCK, REPLACED, KEYS_FILE, MASTER_KEY_FILE, LAST_KEY_BACKUP];
  const isMoved = (name: string) => isOwn(name) && !kept.some((own) => name.startsWith(own));
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
    print(`${folder}  ${countOf(events)} events, whose chain holds`);
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
    print(`${file}  ${countOf(events)} events, whose chain holds, with new indexes`);
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
