/**
 * Sends a table of requests to the embedded service, which runs over a folder of its own with the
 * real engines, and keeps the responses that the documents show.
 */
import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Provider } from '../../command-api/provider/port.ts';
import { openService } from '../../embedded/compose.ts';
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
const MERCHANTS = { m_limited: { rateLimitPerSecond: 1, rateLimitBurst: 1 } };

/** Merchant and scopes of each token; without scopes it has all rights of the merchant. */
const TOKENS = {
  merchant: ['m_demo', undefined],
  auditor: ['*', 'audit:read ops:admin'],
  withoutScope: ['m_demo', ''],
  limited: ['m_limited', 'payments:read payments:write audit:read ops:admin'],
} as const;
type TokenName = keyof typeof TOKENS;

/** Where a request is sent to. */
export type Target = { id: RouteId; url: string };

type Sent = {
  body?: unknown;
  /** That of the table where left out. */
  token?: TokenName | 'none';
  key?: string;
  /** The document shows the body of the request too. */
  show?: boolean;
  /** Names the payment of the response: later steps have `$name` for its id. */
  as?: string;
  /** The request is sent again until its response has this. */
  until?: RegExp;
};

/**
 * One step of a table: a request, recorded where its response has a name; several requests at once;
 * calls of the engines that are replaced until the next such step; or anything else to be done.
 */
export type Step =
  | readonly [target: Target, name: string | undefined, sent?: Sent]
  | { atOnce: readonly Step[] }
  | { faults: Partial<ReadModels & Provider> }
  | ((app: FastifyInstance) => unknown);

/** A start of the service with these settings, and what is then done. */
export type Run = readonly [settings: NodeJS.ProcessEnv, steps: readonly Step[]];

const UNKNOWN_ID = 'pay_00000000000000000000000000';

export const to = (id: RouteId, paymentId = UNKNOWN_ID, query = ''): Target => ({
  id,
  url: ROUTES[id].path.replace(':paymentId', () => paymentId) + query,
});

export const CREATE: Target = to('createPayment');
export const LIST: Target = to('listPayments');

/** A request of the folder examples/. */
export const example = (name: string): Record<string, unknown> =>
  JSON.parse(readFileSync(join(EXAMPLES, `${name}.json`), 'utf8'));

/** The smallest create, by a card of gaps §13; by one that is approved where left out. */
export const smallest = (number = '4242424242424242'): object => ({
  amount: 2500,
  currency: 'USD',
  paymentMethod: {
    type: 'CARD',
    card: { number, holderName: 'Ada Lovelace', expiryMonth: '12', expiryYear: '2030' },
  },
});

/** What every route rejects: first the auth hooks, then the server that shuts down, for good. */
export const rejections = (targets: readonly Target[]): Step[] => [
  ...targets.flatMap((target): Step[] => [
    [target, 'No token', { token: 'none' }],
    [target, 'Scope missing', { token: 'withoutScope' }],
    [LIST, undefined, { token: 'limited' }],
    [target, 'Too many requests', { token: 'limited' }],
    ...(mayBeTooLarge(ROUTES[target.id], BOUND[target.id].request)
      ? [[target, 'Too large', { body: ' '.repeat(65_537) }] as const]
      : []),
  ]),
  ({ lifecycle }) => {
    lifecycle.closing = true;
  },
  ...targets.map((target): Step => [target, 'Shutting down']),
];

const tokenOf = async ([merchantId, scope]: (typeof TOKENS)[TokenName]): Promise<string> => {
  const signer = { algorithm: SECRET_ALGORITHM, key: await importSecret(SECRET) } as const;
  const claims = { merchantId, merchantClaim: 'merchant_id', ttlSeconds: 600, scope };
  return signToken(signer, claims);
};

type Faults = { calls: object };

const withFaults = <T extends object>(own: T, faults: Faults): T => {
  const entries = Object.entries(own).map(([name, call]) => [
    name,
    typeof call === 'function'
      ? (...args: unknown[]) => (Reflect.get(faults.calls, name) ?? call)(...args)
      : call,
  ]);
  return Object.fromEntries(entries);
};

const openOver = (dataDir: string, settings: NodeJS.ProcessEnv, faults: Faults) => {
  const merchants = join(dataDir, 'merchants.json');
  writeFileSync(merchants, JSON.stringify(MERCHANTS));
  const secrets = { JWT_SECRET: SECRET, IDEMPOTENCY_SECRET: SECRET };
  const read = loadConfig({
    DATA_DIR: dataDir,
    MERCHANTS_FILE: merchants,
    ...secrets,
    ...settings,
  });
  if (!read.ok) throw new Error(read.problems.join('; '));
  const { log } = createLogger({ level: 'silent', destination: 'stdout' });
  const fatal = (error: Error): never => {
    throw error;
  };
  return openService(read.config, openDataFolder(dataDir), log, fatal, {
    provider: (own) => withFaults(own, faults),
    readModels: (own) => withFaults(own, faults),
  });
};

const POLL_MS = 10;
const POLLS_MAX = 500;

type Shown = Omit<Recording, 'body'> & { text: string };

/** Takes the steps one after the other; those that have a name are added to `shown`. */
const runner = (app: FastifyInstance, own: TokenName, faults: Faults, shown: Shown[]) => {
  const payments = new Map<string, string>();

  const send = async ({ id, url }: Target, { body, token = own, key }: Sent) =>
    app.inject({
      method: ROUTES[id].method,
      url: url.replace(/\$(\w+)/, (_all, name: string) => payments.get(name) ?? ''),
      headers: {
        ...(token !== 'none' && { authorization: `Bearer ${await tokenOf(TOKENS[token])}` }),
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      ...(body !== undefined && {
        payload: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    });

  const sendUntil = async (target: Target, sent: Sent) => {
    for (let polls = 0; polls < POLLS_MAX; polls += 1) {
      const response = await send(target, sent);
      if (sent.until?.test(response.body) !== false) return response;
      await setTimeout(POLL_MS);
    }
    throw new Error(`${target.id} never responded with what the examples wait for`);
  };

  const take = async (step: Step): Promise<void> => {
    if (typeof step === 'function') await step(app);
    else if ('atOnce' in step) await Promise.all(step.atOnce.map(take));
    else if ('faults' in step) faults.calls = step.faults;
    else {
      const [target, name, sent = {}] = step;
      const request = sent.show && { request: sent.body };
      const one = { id: target.id, name: name ?? '', status: 0, text: '', ...request };
      // Requests at once are recorded in the order in which they were sent.
      if (name !== undefined) shown.push(one);
      const { statusCode, body } = await sendUntil(target, sent);
      Object.assign(one, { status: statusCode, text: body });
      if (sent.as !== undefined) payments.set(sent.as, /pay_\w{26}/.exec(body)?.[0] ?? '');
    }
  };
  return take;
};

/**
 * The recordings of all runs, which share one folder. `stable` makes bodies the same each time;
 * requests have the token `own` where a step names none.
 */
export const recordRuns = async (
  own: TokenName,
  stable: (text: string) => unknown,
  runs: readonly Run[],
): Promise<Recording[]> => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'payments-examples-'));
  const shown: Shown[] = [];
  for (const [settings, steps] of runs) {
    const faults: Faults = { calls: {} };
    const service = await openOver(folder.path, settings, faults);
    try {
      const take = runner(service.app, own, faults, shown);
      for (const step of steps) await take(step);
    } finally {
      await service.stop();
    }
  }
  return shown.map(({ text, ...one }) => ({ ...one, body: stable(text) }));
};
