/** Reports for `payments doctor`: the running service, the settings of this shell with secrets hidden, and the data folder. */
import { accessSync, constants, existsSync, readdirSync, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { AttentionItem } from '../command-api/back-office/attention/contract.ts';
import type { ServiceSettings } from '../command-api/back-office/by-hand/contract.ts';
import { waysBackLost } from '../embedded/data-folder.ts';
import { KEYS_FILE, LAST_KEY_BACKUP } from '../personal-data/open.ts';
import type { ProjectorStatus } from '../projector/compose.ts';
import type { Config, EffectiveSetting } from '../shared/runtime/config.ts';
import { onError, orElse } from '../shared/runtime/error-text.ts';
import { loadConfig } from '../shared/runtime/load-config.ts';
import { isFileLocked, lastBackupOf, SERVICE_LOCK } from '../shared/runtime/private-files.ts';
import { shownSetting, withoutSecrets } from '../shared/runtime/settings/effective.ts';
import { SECRET_SETTINGS, settings } from '../shared/runtime/settings/table.ts';
import type { RelayState, RelayStatus } from '../topics/status.ts';
import type { DelivererStatus } from '../webhooks/delivery/deliverer.ts';
import { readAttention } from './attention.ts';
import { givenToken, openClient, readOps } from './client.ts';
import type { EngineFinding } from './doctor-engines.ts';
import { CommandFailed } from './output.ts';

/** `settings` are those in effect there; null where `reason` says why they could not be read. */
export type ServiceFinding = {
  url: string;
  state: 'running' | 'not ready' | 'stopped';
  engines: EngineFinding[];
  settings: ServiceSettings | null;
  reason?: string;
};

const RESPONSE_MS_MAX = 8_000;

type State = { state: string; simulated?: boolean; stripe?: string; reason?: string | undefined };

const ENGINES: Record<string, readonly [engine: string, setting: string, byDefault: string]> = {
  eventStore: ['event store', 'EVENTSTOREDB_URL', 'SQLite, events.sqlite'],
  readModels: ['read models', 'MONGODB_URL', 'SQLite, read-models.sqlite'],
  relay: ['Kafka', 'KAFKA_BROKERS', 'none'],
};

type Known = 'up' | ProjectorStatus['state'] | DelivererStatus['state'] | RelayState;
const WELL: Known[] = ['up', 'off', 'idle', 'starting', 'catching-up', 'running', 'standing-by'];

const placeOf = (name: string, settings: ServiceSettings | null): string => {
  if (settings === null) return '';
  if (name === 'provider') return settings.provider.address ?? 'in the service';
  const [, setting, byDefault = ''] = ENGINES[name] ?? [];
  const found = settings.settings.find((one) => one.name === setting);
  return found === undefined || found.value === 'not set' ? byDefault : found.value;
};

const engineFinding = (
  name: string,
  { state, simulated, stripe, reason }: State,
  settings: ServiceSettings | null,
): EngineFinding => {
  const test = stripe === 'test' ? 'Stripe in test mode, moves no money' : undefined;
  const cause = reason ?? (simulated === true ? 'simulated, moves no money' : test);
  const [engine = name] = ENGINES[name] ?? [];
  const place = placeOf(name, settings);
  const found = { engine, place, state, fault: !WELL.some((well) => well === state) };
  return cause === undefined ? found : { ...found, cause: withoutSecrets(cause) };
};

/** The command API, whose health the gateway shows, knows neither the projector nor the relay. */
const projectorFindings = async (): Promise<EngineFinding[]> => {
  const unknown = onError(CommandFailed, ({ message }): State => {
    const next = 'is the projector running, and is this the address of the gateway?';
    return { state: 'unknown', reason: `${message}; ${next}` };
  });
  const projections = readOps<{ projections: State[] }>('/ops/v1/projections');
  const topics = readOps<{ relay: RelayStatus }>('/ops/v1/topics');
  const [projector = { state: 'unknown' }, relay] = await Promise.all([
    projections.then(({ projections: [own] }) => own).catch(unknown),
    topics.then(({ relay: { state, error } }): State => ({ state, reason: error })).catch(unknown),
  ]);
  return [engineFinding('projector', projector, null), engineFinding('relay', relay, null)];
};

const healthOf = async (url: string) => {
  const signal = AbortSignal.timeout(RESPONSE_MS_MAX);
  const response = await fetch(`${url}/health/ready`, { signal });
  const body = (await response.json()) as { engines?: Record<string, State> };
  return { isReady: response.ok, body };
};

/** Whether a token can be signed without making a key, because doctor changes nothing. */
const canSign = ({ tokens: { keys } }: Config): boolean =>
  givenToken(undefined) !== undefined ||
  keys.kind === 'secret' ||
  (keys.kind === 'local' && existsSync(join(keys.folder, 'signing-key.json')));

const NO_TOKEN =
  'no token can be signed here: set PAYMENTS_TOKEN to one of all merchants with ops:admin, or JWT_SECRET or DATA_DIR as the service has them';

const settingsOf = async (config: Config): Promise<Pick<ServiceFinding, 'settings' | 'reason'>> => {
  if (!canSign(config)) return { settings: null, reason: NO_TOKEN };
  return readOps<ServiceSettings>('/ops/v1/settings').then(
    (settings) => ({ settings }),
    onError(CommandFailed, ({ message: reason }) => ({ settings: null, reason })),
  );
};

export const lookAtService = async (config: Config): Promise<ServiceFinding> => {
  const { url: address } = await openClient();
  const url = withoutSecrets(address);
  const health = await healthOf(address).catch(() => undefined);
  if (health === undefined) return { url, state: 'stopped', engines: [], settings: null };
  const found = await settingsOf(config);
  const engines = Object.entries(health.body.engines ?? {}).map(([name, state]) =>
    engineFinding(name, state, found.settings),
  );
  if (found.settings?.mode === 'command-api') engines.push(...(await projectorFindings()));
  return { url, state: health.isReady ? 'running' : 'not ready', engines, ...found };
};

export type Attention = { items: AttentionItem[]; unknown?: string };

export const lookForAttention = (): Promise<Attention> =>
  readAttention().then(
    (items) => ({ items }),
    onError(CommandFailed, ({ message: unknown }) => ({ items: [], unknown })),
  );

const givenSettings = (env: NodeJS.ProcessEnv): EffectiveSetting[] =>
  Object.keys(settings).flatMap((name) => {
    const value = env[name]?.trim() ?? '';
    if (value === '') return [];
    const shown = shownSetting(name, value, SECRET_SETTINGS.includes(name));
    return [{ name, value: shown, origin: 'environment' as const }];
  });

export const lookAtSettings = (env: NodeJS.ProcessEnv) => {
  const read = loadConfig(env);
  return read.ok
    ? { settings: [...read.config.effective], problems: [], config: read.config }
    : { settings: givenSettings(env), problems: read.problems, config: undefined };
};

const FREE_BYTES_MIN = 100e6;

const nearestExisting = (path: string): string =>
  existsSync(path) || dirname(path) === path ? path : nearestExisting(dirname(path));

const filesIn = (path: string) =>
  readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => ({ name, bytes: statSync(join(path, name)).size }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));

const problemOf = (path: string, writable: boolean, freeBytes: number | null) => {
  if (!writable)
    return `DATA_DIR: ${path} cannot be written to; give the service a folder of its own`;
  return freeBytes !== null && freeBytes < FREE_BYTES_MIN
    ? `DATA_DIR: less than 100 MB are free at ${path}; free some space before appends fail`
    : undefined;
};

const KEY_BACKUP_AGE_MS_MAX = 86_400_000;

const keysUnsaved = (path: string): string[] => {
  const at = lastBackupOf(path, LAST_KEY_BACKUP)?.getTime() ?? 0;
  return existsSync(join(path, KEYS_FILE)) && Date.now() - at > KEY_BACKUP_AGE_MS_MAX
    ? ['no backup of the keys of personal data is younger than a day: payments backup --keys']
    : [];
};

/** Examines the data folder, or the place where the first start would make it. Changes nothing, never throws. */
export const lookAtDataFolder = (path: string) => {
  const exists = existsSync(path);
  const at = nearestExisting(path);
  const writable = orElse(false, () => {
    accessSync(at, constants.W_OK | constants.X_OK);
    return statSync(at).isDirectory();
  });
  const freeBytes = orElse(null, () => {
    const { bavail, bsize } = statfsSync(at);
    return bavail * bsize;
  });
  return {
    path,
    state: writable ? (exists ? 'writable' : 'not there yet') : 'not writable',
    held: isFileLocked(join(path, SERVICE_LOCK)),
    freeBytes,
    lastBackupAt: orElse(undefined, () => lastBackupOf(path)?.toISOString()),
    files: orElse([], () => filesIn(path)),
    waysBackLost: waysBackLost(path),
    keysUnsaved: orElse([], () => keysUnsaved(path)),
    problem: problemOf(path, writable, freeBytes),
  };
};

/** `freeBytes` is null where the file system does not say; `held`: by a running service. */
export type DataFolderFinding = ReturnType<typeof lookAtDataFolder>;
