/**
 * Reports of the running service for `payments doctor`: its engines as it sees them, its settings in effect
 * (`GET /ops/v1/settings`), and what waits for a person.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ServiceSettings } from '../command-api/operator/settings.ts';
import type { ProjectorStatus } from '../projector/compose.ts';
import type { LogStatus, ParkedList } from '../projector/contract.ts';
import type { RelayState, RelayStatus } from '../projector/relay/status.ts';
import type { DelivererStatus } from '../projector/webhooks/status.ts';
import type { Config } from '../shared/runtime/config.ts';
import { withoutSecrets } from '../shared/runtime/settings/effective.ts';
import { placeOf as breakText } from './breaks.ts';
import { givenToken, jsonOf, openClient } from './client.ts';
import type { EngineFinding } from './doctor-engines.ts';
import { CommandFailed, count } from './output.ts';

/** `settings` are those in effect there; null where `reason` says why they could not be read. */
export type ServiceFinding = {
  url: string;
  state: 'running' | 'not ready' | 'stopped';
  engines: EngineFinding[];
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

type Known = 'up' | ProjectorStatus['state'] | DelivererStatus['state'] | RelayState;
const WELL: Known[] = ['up', 'off', 'idle', 'starting', 'catching-up', 'running', 'standing-by'];

const placeOf = (name: string, settings: ServiceSettings | null): string => {
  if (settings === null) return '';
  const given = (setting: string, otherwise: string) => {
    const { value = 'not set' } = settings.settings.find((one) => one.name === setting) ?? {};
    return value === 'not set' ? otherwise : value;
  };
  if (name === 'eventStore') return given('EVENTSTOREDB_URL', 'SQLite, events.sqlite');
  if (name === 'readModels') return given('MONGODB_URL', 'SQLite, read-models.sqlite');
  if (name === 'provider') return settings.provider.address ?? 'in the service';
  return name === 'relay' ? given('KAFKA_BROKERS', 'none') : '';
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

const projectorPart = async (name: string, read: Promise<State | undefined>) => {
  try {
    return engineFinding(name, (await read) ?? { state: 'unknown' }, null);
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    const reason = `${error.message}; is the projector running, and is this the address of the gateway?`;
    return engineFinding(name, { state: 'unknown', reason }, null);
  }
};

/** The command API, whose health the gateway shows, knows neither the projector nor the relay. */
const projectorFindings = async (): Promise<EngineFinding[]> => {
  const client = await openClient({ scope: 'ops:admin' });
  const projector = async () => {
    const list = await jsonOf<{ projections: State[] }>(client.get('/ops/v1/projections'));
    return list.projections[0];
  };
  const relay = async () => {
    const { relay: own } = await jsonOf<{ relay: RelayStatus }>(client.get('/ops/v1/topics'));
    return { state: own.state, ...(own.error !== undefined && { reason: own.error }) };
  };
  return Promise.all([projectorPart('projector', projector()), projectorPart('relay', relay())]);
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

/** Whether a token can be signed without making a key, because doctor changes nothing. */
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

/** Waits for a person although settings and engines are well; `next` is the command that shows all of it. */
export type AttentionItem = {
  reason: 'PARKED_READ_MODEL' | 'LOG_BROKEN';
  what: string;
  next: string;
};

/** `unknown`: why the projector could not be asked. */
export type Attention = { items: AttentionItem[]; unknown?: string };

const NAMED_MAX = 3;

const parkedItems = ({ parked }: ParkedList): AttentionItem[] => {
  if (parked.length === 0) return [];
  const named = parked.slice(0, NAMED_MAX).map((one) => `${one.paymentId} (${one.reason})`);
  const more = parked.length > NAMED_MAX ? ', …' : '';
  const what = `${count(parked.length, 'payment')} parked: ${named.join(', ')}${more}`;
  return [{ reason: 'PARKED_READ_MODEL', what, next: 'payments parked list' }];
};

const brokenItems = ({ verification: { broken, lastRunAt } }: LogStatus): AttentionItem[] => {
  if (broken === null) return [];
  const what = `the log is broken, as it was verified at ${lastRunAt}: ${breakText(broken)}`;
  return [{ reason: 'LOG_BROKEN', what, next: 'payments verify --all' }];
};

export const lookForAttention = async (): Promise<Attention> => {
  try {
    const client = await openClient({ scope: 'ops:admin' });
    const [parked, log] = await Promise.all([
      jsonOf<ParkedList>(client.get('/ops/v1/parked')),
      jsonOf<LogStatus>(client.get('/ops/v1/log')),
    ]);
    return { items: [...parkedItems(parked), ...brokenItems(log)] };
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    return { items: [], unknown: error.message };
  }
};
