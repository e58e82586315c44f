/**
 * A run of the embedded service that responses are recorded from: over a folder of its own, with the
 * real engines. A store is made to fail, and a provider to hold or lose its responses, only where a
 * fault is to be seen.
 */
import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Provider } from '../../command-api/provider/port.ts';
import { openService, type Service } from '../../embedded/compose.ts';
import { openDataFolder } from '../../embedded/data-folder.ts';
import { importSecret, signToken } from '../../shared/http/auth/local-keys.ts';
import { ROUTES, type RouteId } from '../../shared/http/route-table.ts';
import type {} from '../../shared/http/server/app.ts';
import { mayBeTooLarge } from '../../shared/http/standard-responses.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { loadConfig } from '../../shared/runtime/config.ts';
import { SECRET_ALGORITHM } from '../../shared/runtime/key-algorithms.ts';
import { createLogger } from '../../shared/runtime/log.ts';
import { BOUND, type Recording } from './document.ts';

const SECRET = 'the secret that the examples of the documents are signed with';
const EXAMPLES = join(import.meta.dirname, '../../examples');

type Body = { paymentId: string };

/** Where a request is sent to. */
export type Target = { id: RouteId; url: string };

const UNKNOWN_ID = 'pay_00000000000000000000000000';

export const to = (id: RouteId, paymentId = UNKNOWN_ID, query = ''): Target => ({
  id,
  url: ROUTES[id].path.replace(':paymentId', paymentId) + query,
});

/** A token of the run; without a scope it has all rights of the merchant. */
export const tokenOf = async (merchantId: string, scope?: string): Promise<string> => {
  const signer = { algorithm: SECRET_ALGORITHM, key: await importSecret(SECRET) } as const;
  const claims = { merchantId, merchantClaim: 'merchant_id', ttlSeconds: 600, scope };
  return signToken(signer, claims);
};

export const example = (name: string): Record<string, unknown> =>
  JSON.parse(readFileSync(join(EXAMPLES, `${name}.json`), 'utf8'));

/** The smallest create, by a card of gaps §13. */
export const smallest = (number: string, fields: object = {}): object => ({
  amount: 2500,
  currency: 'USD',
  paymentMethod: {
    type: 'CARD',
    card: { number, holderName: 'Ada Lovelace', expiryMonth: '12', expiryYear: '2030' },
  },
  ...fields,
});
export const APPROVED = '4242424242424242';

/** What the recorder makes go wrong while a flag is up. */
export type Faults = { storeFails: boolean; held: Promise<void>; responsesLost: boolean };

const faultyReadModels =
  (faults: Faults) =>
  (own: ReadModels): ReadModels => {
    const orFail =
      <A extends unknown[], T>(call: (...args: A) => T) =>
      (...args: A): T => {
        if (faults.storeFails) throw new Error('a fault for the examples');
        return call(...args);
      };
    return {
      ...own,
      get: orFail(own.get),
      search: orFail(own.search),
      waitForRevision: orFail(own.waitForRevision),
    };
  };

const LOST = { outcome: 'UNKNOWN', reason: 'timeout' } as const;

const faultyProvider =
  (faults: Faults) =>
  (own: Provider): Provider => ({
    ...own,
    execute: async (operation) => {
      await faults.held;
      return faults.responsesLost ? LOST : own.execute(operation);
    },
    lookUp: async (about) => (faults.responsesLost ? LOST : own.lookUp(about)),
    fence: async (about) => (faults.responsesLost ? LOST : own.fence(about)),
  });

const openOver = (dataDir: string, settings: NodeJS.ProcessEnv, faults: Faults) => {
  const merchants = join(dataDir, 'merchants.json');
  writeFileSync(
    merchants,
    JSON.stringify({ m_limited: { rateLimitPerSecond: 1, rateLimitBurst: 1 } }),
  );
  const read = loadConfig({
    DATA_DIR: dataDir,
    JWT_SECRET: SECRET,
    MERCHANTS_FILE: merchants,
    IDEMPOTENCY_SECRET: SECRET,
    ...settings,
  });
  if (!read.ok) throw new Error(read.problems.join('; '));
  const { log } = createLogger({ level: 'silent', destination: 'stdout' });
  const fatal = (error: Error): never => {
    throw error;
  };
  return openService(read.config, openDataFolder(dataDir), log, fatal, {
    provider: faultyProvider(faults),
    readModels: faultyReadModels(faults),
  });
};

type Sent = { body?: unknown; token?: string | undefined; key?: string; show?: boolean };

/** Sends requests to a service and keeps what is to be recorded. */
const recorder = (service: Service, own: string, recordings: Recording[]) => {
  const send = async ({ id, url }: Target, { body, token = own, key }: Sent = {}) => {
    const response = await service.app.inject({
      method: ROUTES[id].method,
      url,
      headers: {
        ...(token !== '' && { authorization: `Bearer ${token}` }),
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      ...(body !== undefined && {
        payload: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    });
    return { status: response.statusCode, body: response.json() as Body };
  };
  const record = async (target: Target, name: string, sent: Sent = {}): Promise<Body> => {
    // Requests side by side are recorded in the order in which they were sent.
    const at = recordings.push({ id: target.id, name, status: 0, body: undefined }) - 1;
    const received = await send(target, sent);
    const request = sent.show && { request: sent.body };
    recordings[at] = { id: target.id, name, ...received, ...request };
    return received.body;
  };
  const shutDown = (): void => {
    service.app.lifecycle.closing = true;
  };
  return { send, record, shutDown };
};

export type Recorder = ReturnType<typeof recorder>;

/**
 * What every route rejects: first the auth hooks, then the server that shuts down, which ends the
 * run. `drain` uses up the rate of `limited`.
 */
export const recordForAll = async (
  { record, send, shutDown }: Recorder,
  targets: readonly Target[],
  { withoutScope, limited }: { withoutScope: string; limited: string },
  drain: Target,
): Promise<void> => {
  for (const target of targets) {
    await record(target, 'No token', { token: '' });
    await record(target, 'Scope missing', { token: withoutScope });
    await send(drain, { token: limited });
    await record(target, 'Too many requests', { token: limited });
    if (mayBeTooLarge(ROUTES[target.id], BOUND[target.id].request)) {
      await record(target, 'Too large', { body: ' '.repeat(65_537) });
    }
  }
  shutDown();
  for (const target of targets) await record(target, 'Shutting down');
};

export type Run = (
  settings: NodeJS.ProcessEnv,
  work: (own: Recorder) => Promise<void>,
) => Promise<void>;

/**
 * Gives `record` what opens the service, any number of times over one folder, and removes the
 * folder. `token` is sent where a request names none; `stable` makes bodies the same at every run.
 */
export const recordRuns = async (
  token: string,
  stable: (body: unknown) => unknown,
  record: (run: Run, faults: Faults) => Promise<void>,
): Promise<Recording[]> => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'payments-examples-'));
  const faults: Faults = { storeFails: false, held: Promise.resolve(), responsesLost: false };
  const recordings: Recording[] = [];
  const run: Run = async (settings, work) => {
    const service = await openOver(folder.path, settings, faults);
    try {
      await work(recorder(service, token, recordings));
    } finally {
      await service.stop();
    }
  };
  await record(run, faults);
  return recordings.map((one) => ({ ...one, body: stable(one.body) }));
};
