/**
 * What `payments doctor` reports about the running service: whether it is there, its engines as the
 * service itself sees them, and the settings that are in effect there (`GET /ops/v1/settings`).
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ServiceSettings } from '../command-api/operator/settings.ts';
import type { ProjectorStatus } from '../projector/compose.ts';
import type { RelayState, RelayStatus } from '../projector/relay/status.ts';
import type { DelivererStatus } from '../projector/webhooks/deliverer-status.ts';
import type { Config } from '../shared/runtime/config.ts';
import { withoutSecrets } from '../shared/runtime/effective-settings.ts';
import { givenToken, jsonOf, openClient } from './client.ts';
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

type State = { state: string; simulated?: boolean; stripe?: string; reason?: string };
type Health = { engines?: Record<string, State> };

const ENGINES: Record<string, string> = {
  eventStore: 'event store',
  readModels: 'read models',
  relay: 'Kafka',
};

/** The states in which an engine does its work, or was not set at all. */
const WELL: readonly ('up' | ProjectorStatus['state'] | DelivererStatus['state'] | RelayState)[] = [
  'up',
  'off',
  'idle',
  'starting',
  'catching-up',
  'running',
  'standing-by',
];

const placeOf = (name: string, settings: ServiceSettings | null): string => {
  const givenFor = (setting: string) => {
    const { value = 'not set' } = settings?.settings.find((one) => one.name === setting) ?? {};
    return value === 'not set' ? undefined : value;
  };
  if (settings === null) return '';
  if (name === 'eventStore') return givenFor('EVENTSTOREDB_URL') ?? 'SQLite, events.sqlite';
  if (name === 'readModels') return givenFor('MONGODB_URL') ?? 'SQLite, read-models.sqlite';
  if (name === 'provider') return settings.provider.address ?? 'in the service';
  return name === 'relay' ? (givenFor('KAFKA_BROKERS') ?? 'none') : '';
};

const engineFinding = (
  name: string,
  { state, simulated, stripe, reason }: State,
  settings: ServiceSettings | null,
): EngineFinding => {
  const test = stripe === 'test' ? 'Stripe in test mode, moves no money' : undefined;
  const cause = reason ?? (simulated === true ? 'simulated, moves no money' : test);
  const engine = ENGINES[name] ?? name;
  const place = placeOf(name, settings);
  const found = { engine, place, state, fault: !WELL.some((well) => well === state) };
  return cause === undefined ? found : { ...found, cause: withoutSecrets(cause) };
};

/** What the projector's own routes say of one part of it. */
const projectorPart = async (
  name: string,
  read: Promise<State | undefined>,
): Promise<EngineFinding> => {
  try {
    return engineFinding(name, (await read) ?? { state: 'unknown' }, null);
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    const reason = `${error.message}; is the projector running, and is this the address of the gateway?`;
    return engineFinding(name, { state: 'unknown', reason }, null);
  }
};

/** The gateway shows the health of the command API, which knows neither the projector nor the relay. */
const projectorFindings = async (): Promise<EngineFinding[]> => {
  const client = await openClient({ scope: 'ops:admin' });
  const read = <T>(path: string) => jsonOf<T>(client.get(path));
  return Promise.all([
    projectorPart(
      'projector',
      read<{ projections: State[] }>('/ops/v1/projections').then(({ projections: [own] }) => own),
    ),
    projectorPart(
      'relay',
      read<{ relay: RelayStatus }>('/ops/v1/topics').then(({ relay: { state, error } }) =>
        error === undefined ? { state } : { state, reason: error },
      ),
    ),
  ]);
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
  givenToken(undefined) !== undefined ||
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
  if (read.settings?.mode === 'command-api') engines.push(...(await projectorFindings()));
  return { url: shown, state: health.isReady ? 'running' : 'not ready', engines, ...read };
};
