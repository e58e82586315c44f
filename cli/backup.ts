/** `payments backup <folder>`: copies the data folder while the service runs; no checkpoint is ahead of the log (ADR-0078). */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { backup as copyDatabase, DatabaseSync } from 'node:sqlite';
import type { Command } from 'commander';
import { isDiskFull, reasonOf } from '../shared/runtime/error-text.ts';
import {
  LAST_BACKUP,
  makeDataDir,
  replacePrivateFile,
  syncPath,
} from '../shared/runtime/private-files.ts';
import { type Format, formatOption, verb } from './options.ts';
import { CommandFailed, counted, note, print, printJson } from './output.ts';
import { readSettings } from './settings.ts';

export const EVENTS = 'events.sqlite';
/** Copied in this order. Read models are rebuilt from the events. */
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

type Copied = { folder: string; events: number; files: { name: string; bytes: number }[] };

/** Each file for its owner alone, on disk, and each database checked. Throws Error. */
export const copyParts = async (from: string, to: string): Promise<Copied['files']> => {
  const files: Copied['files'] = [];
  for (const name of PARTS) {
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

export const whyOf = (error: unknown): string =>
  isDiskFull(error) ? 'the disk is full' : reasonOf(error);

/** Copies under another name first, so that an interrupted copy never looks whole. */
const copyFolder = async (from: string, to: string): Promise<Copied> => {
  const partial = join(dirname(to), `.${basename(to)}.partial`);
  try {
    makeDataDir(dirname(to));
    rmSync(partial, { recursive: true, force: true });
    mkdirSync(partial, { mode: 0o700 });
    const files = await copyParts(from, partial);
    const events = eventsIn(join(partial, EVENTS));
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
export const embeddedFolder = (): string => {
  const { dataDir, eventStoreDbUrl } = readSettings();
  if (eventStoreDbUrl === undefined) return dataDir;
  throw new CommandFailed(
    'EVENTSTOREDB_URL is set, so the events are not in DATA_DIR; to back up the servers see "Back up several processes" in docs/backup.md',
  );
};

const runBackup = async (target: string, { format }: { format: Format }): Promise<void> => {
  process.umask(0o077);
  const dataDir = embeddedFolder();
  const folder = resolve(target);
  if (existsSync(folder))
    throw new CommandFailed(
      `${folder} exists already, and a backup replaces nothing; name another folder`,
    );
  if (!existsSync(join(dataDir, EVENTS)))
    throw new CommandFailed(`DATA_DIR: ${dataDir} holds no events; see payments doctor`);
  const copied = await copyFolder(dataDir, folder);
  await replacePrivateFile(join(dataDir, LAST_BACKUP), '').catch((error: unknown) =>
    note(`its time could not be noted in ${dataDir}, so alerts do not know of it: ${whyOf(error)}`),
  );
  if (format === 'json') return printJson(copied);
  print(`${folder}  ${counted(copied.events)} events`);
  for (const { name, bytes } of copied.files) print(`  ${name}  ${counted(bytes)} bytes`);
  const secrets = copied.files.flatMap(({ name }) => (name.endsWith('.sqlite') ? [] : [name]));
  if (secrets.length > 0)
    note(`It holds secrets (${secrets.join(', ')}): keep it as safe as the service.`);
  note(`To restore it: stop the service, then payments restore ${folder}`);
};

export const backupCommand = (): Command =>
  verb('backup', 'payments backup /backups/payments-2026-11-21')
    .description('Copies the data folder of the embedded store while the service runs.')
    .argument('<folder>', 'the folder to write; must not exist yet')
    .addOption(formatOption())
    .action(runBackup);
