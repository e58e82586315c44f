/**
 * A run of the embedded service that answers are recorded from: over a folder of its own, with the
 * real engines. A store is made to fail, and a provider to hold or lose its answers, only where a
 * fault is to be seen.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Provider } from '../../command-api/provider/port.ts';
import { openService, type Service } from '../../embedded/compose.ts';
import { openDataFolder } from '../../embedded/data-folder.ts';
import { importSecret, signToken } from '../../shared/http/auth/local-keys.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { loadConfig } from '../../shared/runtime/config.ts';
import { SECRET_ALGORITHM } from '../../shared/runtime/key-algorithms.ts';
import { createLogger } from '../../shared/runtime/log.ts';
import type { Recording } from './document.ts';

const SECRET = 'the secret that the examples of the documents are signed with';
export const PAYMENTS = '/api/v1/payments';
const EXAMPLES = join(import.meta.dirname, '../../examples');

type Body = { paymentId: string };

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
    const orFail = <A extends unknown[], T>(call: (...args: A) => T) => {
      return (...args: A): T => {
        if (faults.storeFails) throw new Error('a fault for the examples');
        return call(...args);
      };
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
  const send = async (method: string, url: string, { body, token = own, key }: Sent = {}) => {
    const response = await service.app.inject({
      method: method as 'GET',
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
  const record = async (
    [operationId, method, url]: Route,
    name: string,
    sent: Sent = {},
  ): Promise<Body> => {
    const { status, body } = await send(method, url, sent);
    const request = sent.show && { request: sent.body };
    recordings.push({ operationId, name, status, body, ...request });
    return body;
  };
  return { send, record };
};

export type Recorder = ReturnType<typeof recorder>;
export type Route = [operationId: string, method: 'GET' | 'POST', url: string];

export type Run = (
  settings: NodeJS.ProcessEnv,
  work: (own: Recorder, service: Service) => Promise<void>,
) => Promise<void>;

/**
 * Gives `record` what opens the service, any number of times over one folder, and removes the
 * folder. `token` is sent where a request names none.
 */
export const recordRuns = async (
  token: string,
  record: (run: Run, faults: Faults) => Promise<void>,
): Promise<Recording[]> => {
  const dataDir = mkdtempSync(join(tmpdir(), 'payments-examples-'));
  const faults: Faults = { storeFails: false, held: Promise.resolve(), responsesLost: false };
  const recordings: Recording[] = [];
  const run: Run = async (settings, work) => {
    const service = await openOver(dataDir, settings, faults);
    try {
      await work(recorder(service, token, recordings), service);
    } finally {
      await service.stop();
    }
  };
  try {
    await record(run, faults);
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
  return recordings;
};
