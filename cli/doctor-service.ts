/**
 * What `payments doctor` reports about the running service: whether it is there, its engines as the
 * service itself sees them, and the settings that are in effect there (`GET /ops/v1/settings`).
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ServiceSettings } from '../command-api/operator/settings.ts';
import type { Config } from '../shared/runtime/config.ts';
import { withoutSecrets } from '../shared/runtime/effective-settings.ts';
import { jsonOf, openClient } from './client.ts';
import { CommandFailed } from './command-failed.ts';
import type { EngineFinding } from './doctor-engines.ts';

/** The service at the address of this shell. */
export type ServiceFinding = {
  /** Without secrets. */
  url: string;
  state: 'running' | 'not ready' | 'stopped';
  /** As the service sees them; none of a stopped one. */
  engines: EngineFinding[];
  /** In effect there; null where they could not be read, and `reason` says why. */
  settings: ServiceSettings | null;
  reason?: string;
};

const RESPONSE_MS_MAX = 8_000;

type State = { state: string; simulated?: boolean; reason?: string };
type Health = { engines?: Record<string, State> };

const ENGINES: Record<string, string> = {
  eventStore: 'event store',
  readModels: 'read models',
  provider: 'provider',
  relay: 'Kafka',
};

/** The states in which an engine does its work, or was not set at all. */
const WELL = ['up', 'off', 'idle', 'starting', 'running', 'standing-by', 'filling'];

const placeOf = (name: string, settings: ServiceSettings | null): string => {
  const givenFor = (setting: string) => {
    const { value = 'not set' } = settings?.settings.find((one) => one.name === setting) ?? {};
    return value === 'not set' ? undefined : value;
  };
  if (settings === null) return '';
  if (name === 'eventStore') return givenFor('EVENTSTOREDB_URL') ?? 'SQLite, events.sqlite';
  if (name === 'readModels') return givenFor('MONGODB_URL') ?? 'SQLite, read-models.sqlite';
  if (name === 'provider') return settings.provider.address ?? 'in the service';
  return givenFor('KAFKA_BROKERS') ?? 'none';
};

const engineFinding = (
  name: string,
  { state, simulated, reason }: State,
  settings: ServiceSettings | null,
): EngineFinding => {
  const cause = reason ?? (simulated === true ? 'simulated, moves no money' : undefined);
  const engine = ENGINES[name] ?? name;
  const place = placeOf(name, settings);
  const found = { engine, place, state, fault: !WELL.includes(state) };
  return cause === undefined ? found : { ...found, cause: withoutSecrets(cause) };
};

/** Undefined where nothing responds. */
const healthOf = async (url: string): Promise<{ isReady: boolean; body: Health } | undefined> => {
  try {
    const signal = AbortSignal.timeout(RESPONSE_MS_MAX);
    const response = await fetch(`${url}/health/ready`, { signal });
    return { isReady: response.ok, body: (await response.json()) as Health };
  } catch {
    return undefined;
  }
};

/** A token can be signed without making a key: doctor changes nothing. */
const canSign = ({ tokens: { keys } }: Config): boolean =>
  (process.env.PAYMENTS_TOKEN ?? '').trim() !== '' ||
  keys.kind === 'secret' ||
  (keys.kind === 'local' && existsSync(join(keys.folder, 'signing-key.json')));

const NO_TOKEN =
  'no token can be signed here: set PAYMENTS_TOKEN to one of all merchants with ops:admin, or JWT_SECRET or DATA_DIR as the service has them';

const settingsOf = async (config: Config): Promise<Pick<ServiceFinding, 'settings' | 'reason'>> => {
  if (!canSign(config)) return { settings: null, reason: NO_TOKEN };
  try {
    const client = await openClient({ scope: 'ops:admin' });
    return { settings: await jsonOf<ServiceSettings>(client.get('/ops/v1/settings')) };
  } catch (error) {
    if (error instanceof CommandFailed) return { settings: null, reason: error.message };
    throw error;
  }
};

/** Asks the service at the address of this shell. Throws CommandFailed where that is no address. */
export const lookAtService = async (config: Config): Promise<ServiceFinding> => {
  const { url } = await openClient();
  const shown = withoutSecrets(url);
  const health = await healthOf(url);
  if (health === undefined) return { url: shown, state: 'stopped', engines: [], settings: null };
  const read = await settingsOf(config);
  const engines = Object.entries(health.body.engines ?? {}).map(([name, state]) =>
    engineFinding(name, state, read.settings),
  );
  return { url: shown, state: health.isReady ? 'running' : 'not ready', engines, ...read };
};
