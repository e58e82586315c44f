/**
 * The whole embedded service in the process of the tests: a real event store, real read models and the
 * real simulator over a temporary folder. `openInProcess` is asked through `app.inject`, without a socket;
 * `startInProcess` listens, and is asked as `startService` of service-processes.ts.
 */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect } from '@jest/globals';
import type { FastifyInstance } from 'fastify';
import { type JWTPayload, SignJWT } from 'jose';
import { openService, type Wrappers } from '../../embedded/compose.ts';
import { openDataFolder } from '../../embedded/data-folder.ts';
import type { LedgerEntry, Provider } from '../../providers/port.ts';
import { openAuthHooks } from '../../shared/http/auth/hooks.ts';
import { type ErrorCode, messageOf } from '../../shared/http/errors.ts';
import { buildApp } from '../../shared/http/server/app.ts';
import { loadConfig } from '../../shared/runtime/load-config.ts';
import type { Log } from '../../shared/runtime/log.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { providerFaults, readModelsFaults } from './faults-on-demand.ts';
import { freePort } from './free-port.ts';
import { expectDescribed } from './once/api-description.ts';
import { keptThread } from './once/kept-threads.ts';
import { type Body, clientOf, isReady, parsed } from './service-client.ts';
import type { ServiceOptions } from './service-processes.ts';
import { silentLog } from './silent-log.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { PATIENT } from './time-bounds.ts';
import { until } from './until.ts';

export const SECRET = 'a shared secret of the tests, 32 bytes long at least';
/** What an embedded service is given where it shares its event store. */
export const SECRETS = {
  IDEMPOTENCY_SECRET: SECRET,
  WEBHOOK_SECRET: SECRET,
  PERSONAL_DATA_KEK: SECRET,
};
export const PAYMENTS = '/api/v1/payments';
export const APPROVED = '4242424242424242';
/** What would begin by itself a minute after the start does not begin in a test that takes so long. */
const UNSCHEDULED = { RECONCILE_INTERVAL_MS: '0', VERIFY_INTERVAL_MS: '0' };
/** Recovery asks once, and then not again before the test is over. */
export const NO_RETRIES = { RECOVERY_DELAYS_MS: '600000' };
export const CREATED_ID = /^pay_[0-9A-HJKMNP-TV-Z]{26}$/;

export type CommandResponse = {
  status: number;
  headers: Record<string, unknown>;
  text: string;
  /** The body read as JSON; empty when it is none. */
  json: Body;
};

export type Asking = {
  /** Instead of a token of `m_test`; null sends no Authorization header at all. */
  token?: string | null;
  key?: string;
  headers?: Record<string, string | string[]>;
};

export type InProcess = Awaited<ReturnType<typeof openInProcess>>;

/** A token as an issuer that knows the secret would make it; `claims` win over the defaults. */
export const signToken = (claims: JWTPayload, secret: string = SECRET): Promise<string> =>
  new SignJWT({ exp: Math.floor(Date.now() / 1000) + 3600, ...claims })
    .setProtectedHeader({ alg: 'HS256' })
    .sign(new TextEncoder().encode(secret));

/** A token of one merchant; without a scope it has all of that merchant's rights. */
export const token = (merchant: string, scope?: string): Promise<string> =>
  signToken({ merchant_id: merchant, sub: 'tester', ...(scope !== undefined && { scope }) });

const example = (name: string): Record<string, unknown> =>
  JSON.parse(readFileSync(join(import.meta.dirname, '../../examples', name), 'utf8'));

/** The example of the README with another card, or other fields of its own. */
export const payment = ({ number = APPROVED, cvv = '123', ...fields }: Fields = {}): object => {
  const whole = example('payment.json') as { paymentMethod: { card: object } };
  const card = { ...whole.paymentMethod.card, number, cvv };
  const { merchantReference: _, ...rest } = whole as Record<string, unknown>;
  return { ...rest, paymentMethod: { type: 'CARD', card }, ...fields };
};

type Fields = { number?: string; cvv?: string; [field: string]: unknown };

const asPayload = (body: unknown): string | Buffer | undefined =>
  typeof body === 'string' || Buffer.isBuffer(body) || body === undefined
    ? body
    : JSON.stringify(body);

const readConfig = (settings: NodeJS.ProcessEnv) => {
  const read = loadConfig({ ...PATIENT, ...settings });
  if (!read.ok) throw new Error(read.problems.join('; '));
  return read.config;
};

export const configOf = (settings: Record<string, string>) =>
  readConfig({ JWT_SECRET: SECRET, ...settings });

const fatal = (error: Error) => {
  throw error;
};

/** Requests to an app, by default with the token `own`; each response is held against the API document. */
export const requestsTo = (app: () => FastifyInstance, own: string) => {
  /** A text or a buffer is sent as it is, anything else as JSON. */
  const ask = async (
    method: string,
    path: string,
    body?: unknown,
    { token: bearer = own, key, headers = {} }: Asking = {},
  ): Promise<CommandResponse> => {
    const payload = asPayload(body);
    const response = await app().inject({
      method: method as 'GET',
      url: path,
      headers: {
        ...(bearer !== null && { authorization: `Bearer ${bearer}` }),
        ...(key !== undefined && { 'idempotency-key': key }),
        ...headers,
      },
      ...(payload !== undefined && { payload }),
    });
    const { statusCode: status, headers: received, body: text } = response;
    expectDescribed({ method, path, status, headers: received, text });
    return { status, headers: received, text, json: parsed(text) };
  };
  return {
    ask,
    create: (fields: object = {}, asking?: Asking) =>
      ask('POST', PAYMENTS, payment({ ...fields }), asking),
    /** `kind` is capture, void or refund. */
    change: (kind: string, paymentId: string, body?: unknown, asking?: Asking) =>
      ask('POST', `${PAYMENTS}/${paymentId}/${kind}`, body, asking),
    get: (paymentId: string, asking?: Asking) =>
      ask('GET', `${PAYMENTS}/${paymentId}`, undefined, asking),
  };
};

/** An app for the routes of one part of the service; tokens are those of `SECRET`. */
export const openApp = async (settings: Record<string, string> = {}, metrics = createMetrics()) => {
  const config = configOf(settings);
  const app = buildApp({ log: silentLog, metrics, maxInFlight: 10_000 });
  const authHooks = await openAuthHooks(config, { log: silentLog, metrics: createMetrics() });
  return { app, authHooks, config };
};

/** What a service is opened over: a copy of a folder, and a provider in the place of its simulator. */
export type OpenedOver = Wrappers & {
  folder?: string;
  unresolvedAfterMs?: number;
};

/** Opens a service over a folder of its own; `await using` ends it and removes the folder. */
export const openInProcess = async (
  settings: Record<string, string> = {},
  log: Log = silentLog,
  over: OpenedOver = {},
) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'payments-http-'));
  if (over.folder !== undefined) cpSync(over.folder, dataDir, { recursive: true });
  const faults = providerFaults();
  const readModels = readModelsFaults();
  let provider: Provider | undefined;
  const open = () =>
    openService(
      configOf({ DATA_DIR: dataDir, ...UNSCHEDULED, ...settings }),
      openDataFolder(dataDir),
      log,
      fatal,
      {
        provider: (own) => {
          provider = over.provider?.(own) ?? own;
          return faults.wrap(provider);
        },
        ...(over.store && { store: over.store }),
        readModels: (own) => readModels.wrap(over.readModels?.(own) ?? own),
        unresolvedAfterMs: over.unresolvedAfterMs,
        newThread: keptThread,
      },
    );
  let service = await open();
  const requests = requestsTo(() => service.app, await token('m_test'));

  return {
    /** The data folder, whose files a test may write. */
    dataDir,
    faults,
    readModels,
    ...requests,
    /** A figure of its metrics by name, and labels if it has any; NaN where it has none of that name. */
    metric: async (name: string): Promise<number> => {
      const { text } = await requests.ask('GET', '/metrics', undefined, { token: null });
      return Number(text.split(`\n${name} `)[1]?.split('\n')[0]);
    },
    /** What the provider carried out for a payment, or for all of them. */
    ledger: async (paymentId?: string): Promise<LedgerEntry[]> => {
      const { entries = [] } = (await provider?.ledger(null, 1000)) ?? {};
      return paymentId === undefined ? entries : entries.filter((e) => e.paymentId === paymentId);
    },
    /** Requests that have no response yet; one that is streamed is none of them. */
    inFlight: (): number => service.app.lifecycle.places.taken(),
    /** Listens on a free port of loopback, for a client of its own; gives the address. */
    listen: () => service.app.listen({ host: '127.0.0.1', port: 0 }),
    /** Opens the service again over the same folder, after `meanwhile` has had the folder to itself. */
    restart: async (meanwhile?: (dataDir: string) => void | Promise<void>): Promise<void> => {
      await service.stop();
      await meanwhile?.(dataDir);
      service = await open();
    },
    [Symbol.asyncDispose]: async () => {
      readModels.release();
      await service.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
};

/** A service for all tests of a file, ended after them. */
export const serviceOfTests = async (...options: Parameters<typeof openInProcess>) => {
  const service = await openInProcess(...options);
  afterAll(() => service[Symbol.asyncDispose]());
  return service;
};

export type StartedInProcess = Awaited<ReturnType<typeof startInProcess>>;

/** Opens it with the settings of `env` at an address and waits until it is ready. It logs nothing. */
export const startInProcess = async ({
  env,
  dataDir: given,
  wrappers,
}: Pick<ServiceOptions, 'env' | 'dataDir'> & {
  wrappers?: Wrappers;
} = {}) => {
  const { path: dataDir, remove } =
    given === undefined ? temporaryFolder() : { path: given, remove: () => undefined };
  const PORT = env?.PORT ?? String(await freePort());
  const config = readConfig({ ...env, DATA_DIR: dataDir, PORT });
  const { host, port } = config;
  const folder = openDataFolder(dataDir);
  const opened = await openService(config, folder, silentLog, fatal, {
    newThread: keptThread,
    ...wrappers,
  });
  await opened.app.listen({ host, port });
  let stopped: Promise<void> | undefined;
  const at = { url: `http://127.0.0.1:${port}`, port, dataDir };
  await until('the service is ready', () => isReady(at.url));
  return {
    ...at,
    ...clientOf(at, env),
    /** Stops the service in good order, once, and removes the data folder, unless it is the caller's. */
    [Symbol.asyncDispose]: async (): Promise<void> => {
      stopped ??= opened.stop();
      await stopped;
      remove();
    },
  };
};

/**
 * Has the token of `m_test` verified and remembered, and draws on no rate limit: 403 comes before
 * 429. Requests that are then sent at once reach the rate limit in the order they were sent in.
 */
export const rememberToken = async (service: InProcess): Promise<void> =>
  expect((await service.ask('GET', '/ops/v1/unresolved')).status).toBe(403);

/** What every response has (gaps §1). */
export const expectResponseHeaders = ({ headers }: CommandResponse): void => {
  expect(headers).toMatchObject({
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    'request-id': expect.stringMatching(/^[0-9A-Z]{26}$/),
  });
  expect(headers).not.toHaveProperty('server');
  expect(headers).not.toHaveProperty('x-powered-by');
};

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** They repeat nothing of the request (gaps §1). */
const usualDetails = ({ headers }: CommandResponse, error: ErrorCode): string[] => {
  if (error === 'NOT_FOUND') return ['payments are at /api/v1/payments; /docs lists every address'];
  return error === 'METHOD_NOT_ALLOWED' ? [`this address takes ${headers.allow}`] : [];
};

/** The error body of the contract, whole: four fields in their order, and these details. */
export const expectError = (
  response: CommandResponse,
  status: number,
  error: ErrorCode,
  details: unknown = usualDetails(response, error),
): void => {
  expect(response.json).toStrictEqual({
    error,
    message: messageOf(error),
    details,
    timestamp: expect.stringMatching(TIME),
  });
  expect(Object.keys(response.json)).toStrictEqual(['error', 'message', 'details', 'timestamp']);
  expect(response.status).toBe(status);
  expectResponseHeaders(response);
};

/** An answer without what differs from one request to the next. */
export const timeless = ({ status, headers, text }: CommandResponse): object => {
  const { date: _, 'request-id': __, ...rest } = headers;
  return { status, headers: rest, text: text.replace(/"timestamp":"[^"]+"/, '') };
};

/** The payment that a response without a body of one names in its `Location`. */
export const locatedId = ({ headers }: CommandResponse): string =>
  String(headers.location).replace(`${PAYMENTS}/`, '');

/** Each file of a service's data folder, as text. */
export const storedTexts = ({ dataDir }: { dataDir: string }): string[] =>
  readdirSync(dataDir, { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile())
    .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1'));

export const idOf = ({ json }: CommandResponse): string => json.paymentId;

/**
 * Sends a request whose outcome gets lost, and gives its answer once recovery has asked in vain;
 * with `NO_RETRIES` only the next command asks again. Questions are answered from then on.
 */
export const leaveUnresolved = async (
  { faults }: InProcess,
  fault: 'answer lost' | 'call lost',
  send: () => Promise<CommandResponse>,
): Promise<CommandResponse> => {
  const before = faults.questions;
  faults.respondsToLookUps = false;
  faults.next(fault);
  const response = await send();
  await until('recovery has asked', () => faults.questions > before);
  faults.respondsToLookUps = true;
  return response;
};
