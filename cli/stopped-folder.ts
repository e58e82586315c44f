/** `--data`: the audit routes over a stopped folder's store, read in this process, unrecorded. */
import { constants, copyFileSync, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { EXPORT_ROUTES } from '../audit/export.ts';
import { openReading, registerAuditApi } from '../audit/routes.ts';
import { headFileOf, isNextKey, readHeadFile, readSealingKey } from '../audit/seals/key.ts';
import { rejectUnsealed } from '../audit/seals/open.ts';
import { publicKeyOf } from '../audit/seals/seals.ts';
import { lastKeyOf, sealsOf } from '../audit/seals/stored-seals.ts';
import {
  type ReconcileOptions,
  reconcile,
} from '../command-api/back-office/reconcile/reconcile.ts';
import { RECONCILE_ROUTES } from '../command-api/back-office/reconcile/routes.ts';
import { openOuterProvider } from '../command-api/open-provider.ts';
import { masterKeysOf } from '../personal-data/master-key.ts';
import { KEYS_FILE, MASTER_KEY_FILE } from '../personal-data/open.ts';
import { readKeys } from '../personal-data/sqlite/keys.ts';
import { verifyKeysOf } from '../personal-data/verify-keys.ts';
import type { Provider } from '../providers/port.ts';
import { readLedger } from '../providers/simulator/ledger.ts';
import { ledgerPageOf } from '../providers/simulator/simulator.ts';
import { logIdOf } from '../shared/event-store/chain.ts';
import { StoreFileUnusable, UnreadableStream } from '../shared/event-store/errors.ts';
import type { EventStore } from '../shared/event-store/port.ts';
import { openSqliteForReading } from '../shared/event-store/sqlite/event-store.ts';
import type { AuthHooks } from '../shared/http/auth/hooks.ts';
import { registerRoutes } from '../shared/http/route.ts';
import { buildApp } from '../shared/http/server/app.ts';
import { createStreams } from '../shared/http/server/streams.ts';
import { ReadModelsUnavailable } from '../shared/read-models/errors.ts';
import { onError, reasonOf } from '../shared/runtime/error-text.ts';
import { createLogger } from '../shared/runtime/log.ts';
import { createMetrics } from '../shared/runtime/metrics.ts';
import {
  type FileLock,
  isLockHeld,
  SERVICE_LOCK,
  shareFileLock,
  takeFileLock,
} from '../shared/runtime/private-files.ts';
import { LogMisfit } from '../shared/subscription/errors.ts';
import type { Client } from './client.ts';
import { CommandFailed, note } from './output.ts';
import { keyPlaceIn, readSettings, requireReadable, secretIn } from './settings.ts';

const WAITING_PAGES = '-wal';

export const hasWaitingPages = (file: string): boolean =>
  (statSync(file + WAITING_PAGES, { throwIfNoEntry: false })?.size ?? 0) > 0;

const copyOf = (file: string): string => {
  const folder = mkdtempSync(join(tmpdir(), 'payments-stopped-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  // A signal ends a process without 'exit'.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
  const copy = join(folder, basename(file));
  for (const end of ['', WAITING_PAGES])
    copyFileSync(file + end, copy + end, constants.COPYFILE_FICLONE);
  note(`${file}${WAITING_PAGES} holds pages that are not in the file: a copy in ${folder} is read`);
  return copy;
};

export const unchangedAddress = (file: string): string =>
  `${pathToFileURL(file).href}?mode=ro&immutable=1`;

export const EVENTS = 'events.sqlite';
const LEDGER = 'provider-ledger.sqlite';

/** Keeps a service from starting on the folder. Throws CommandFailed where one holds it. */
const shareFolder = (folder: string): FileLock | undefined => {
  const lock = join(folder, SERVICE_LOCK);
  requireReadable(folder);
  requireReadable(lock);
  if (!existsSync(lock)) return undefined;
  try {
    return shareFileLock(lock);
  } catch {
    throw new CommandFailed(`${folder} is held by a running service: leave out --data to ask it`);
  }
};

/** Of a stopped folder, for `step`. Throws CommandFailed where a service, or another verb, holds it. */
export const lockFolder = (folder: string, step: string): FileLock => {
  try {
    return takeFileLock(join(folder, SERVICE_LOCK));
  } catch (error) {
    if (!isLockHeld(error))
      throw new CommandFailed(`${folder} cannot be locked by this user (${reasonOf(error)})`);
    throw new CommandFailed(
      `${folder} is held by a running service, or read with --data: stop it, ${step}, and start it again`,
    );
  }
};

const fileIn = (folder: string, name: string, else_: string): string => {
  const file = join(folder, name);
  requireReadable(file);
  // SQLite would write next to a write-ahead log that is not empty.
  if (statSync(file, { throwIfNoEntry: false })?.isFile())
    return hasWaitingPages(file) ? copyOf(file) : unchangedAddress(file);
  throw new CommandFailed(`${folder} holds no ${name}; ${else_}`);
};

const openStore = async (folder: string): Promise<EventStore> => {
  const file = fileIn(folder, EVENTS, 'name the data folder of an embedded service, or a backup');
  const unusable = onError(StoreFileUnusable, ({ message }): never => {
    throw new CommandFailed(`${message}; compare it with a backup or an export`, 3);
  });
  return openSqliteForReading(file).catch(unusable);
};

/** Checks the log by its last seal and the key of the settings or the folder. Throws StoreUnavailable. */
const checkSealedHead = async (folder: string, store: EventStore, isOlder: boolean) => {
  const place = keyPlaceIn(folder);
  const { keyFile } = place;
  const headFile = headFileOf(place);
  requireReadable(keyFile);
  requireReadable(headFile);
  if (!existsSync(keyFile)) return {};
  let publicKey: string | undefined;
  try {
    publicKey = publicKeyOf(await readSealingKey(keyFile));
    const seals = await sealsOf(store);
    const last = lastKeyOf(seals);
    // Left by an interrupted rotation, which the next start would finish.
    if (last !== undefined && isNextKey(keyFile, last)) publicKey = last;
    const kept = isOlder ? undefined : readHeadFile(place);
    const log = await logIdOf(store);
    await rejectUnsealed({ store, seals, log, publicKey, kept, headFile });
  } catch (error) {
    if (error instanceof LogMisfit) return { publicKey, misfit: error.message };
    // The verb itself names the seal that cannot be read.
    if (!(error instanceof UnreadableStream)) throw error;
  }
  return { publicKey };
};

const booksOf = (folder: string): Pick<ReconcileOptions, 'provider' | 'providers'> => {
  const config = readSettings();
  const { kind, names } = config.provider;
  if (kind !== 'simulator') return { provider: openOuterProvider(config), providers: names };
  const { list } = readLedger(fileIn(folder, LEDGER, 'set PROVIDER_URL to ask the provider'));
  const ledger: Provider['ledger'] = async (after, limit) =>
    ledgerPageOf(list(Number(after ?? 0), limit));
  return { provider: { ledger }, providers: ['simulator', ...names.slice(1)] };
};

const trusting =
  (merchantId: string): AuthHooks =>
  () =>
  (request, _reply, done) => {
    request.principal = { merchantId, actor: 'cli', scopes: undefined };
    done();
  };

const notSearched = async (): Promise<never> => {
  throw new ReadModelsUnavailable('the read models of a stopped folder are not searched');
};
const noReadModels = {
  getAny: async () => undefined,
  search: notSearched,
  idsAfter: notSearched,
  inspect: notSearched,
  parked: notSearched,
};

/** Without the master key each key is unreadable. */
const verifyKeysIn = (folder: string, store: EventStore) => (signal: AbortSignal) => {
  const { kek = secretIn(join(folder, MASTER_KEY_FILE)) ?? '', previousKek } =
    readSettings().personalData;
  const keys = readKeys(fileIn(folder, KEYS_FILE, ''), masterKeysOf(kek, previousKek));
  return verifyKeysOf(store, keys)(signal);
};

const appOver = (folder: string, store: EventStore, merchant: string, sealingKey?: string) => {
  const { log } = createLogger({ level: 'silent', destination: 'stdout' });
  const app = buildApp({ log, metrics: createMetrics(), maxInFlight: 10 });
  const record = async () => undefined;
  const audited = { store, readModels: noReadModels, record };
  registerAuditApi(app, trusting(merchant), {
    ...audited,
    operationsMax: readSettings().maxOperationsPerPayment,
    openText: async () => ({ sealed: true }),
    verifyKeys: existsSync(join(folder, KEYS_FILE)) ? verifyKeysIn(folder, store) : undefined,
    sealingKey,
  });
  // Unsigned: anyone can make a folder.
  const exporting = openReading(app, audited);
  registerRoutes(app, trusting(merchant), EXPORT_ROUTES, { exporting });
  registerRoutes(app, trusting(merchant), RECONCILE_ROUTES, {
    record,
    streams: createStreams(app),
    reconcile: () => reconcile({ store, ...booksOf(folder) }),
  });
  return app;
};

/** `isOlder`: than the kept head. Throws CommandFailed where it is held, or has no log or a broken one. */
export const openStoppedFolder = async (
  folder: string,
  merchant = '*',
  isOlder = false,
): Promise<Client> => {
  const lock = shareFolder(folder);
  process.once('exit', () => lock?.release());
  const store = await openStore(folder);
  const { publicKey, misfit } = await checkSealedHead(folder, store, isOlder);
  const app = appOver(folder, store, merchant, publicKey);
  const send = async (method: 'GET' | 'POST', url: string, headers = {}) => {
    const response = await app.inject({ method, url, headers, payloadAsStream: true });
    const { statusCode: status, headers: received } = response;
    const body = Readable.toWeb(response.stream());
    if (status === 503 && method === 'GET')
      throw new CommandFailed(
        `a part of ${folder}/${EVENTS} cannot be read; what can be read: payments export --data ${folder} --out <file>`,
        3,
      );
    return new Response(body, { status, headers: received as Record<string, string> });
  };
  return {
    url: folder,
    misfit,
    get: (path, headers) => send('GET', path, headers),
    post: (path, _body, headers) => send('POST', path, headers),
    send: async () => {
      throw new CommandFailed('a stopped folder is only read');
    },
  };
};
