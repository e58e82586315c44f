/** Sends tables of requests to the embedded service over a new folder, and keeps the responses for the documents. */
import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { FastifyInstance, LightMyRequestResponse } from 'fastify';
import { openService } from '../../embedded/compose.ts';
import { openDataFolder } from '../../embedded/data-folder.ts';
import type { Provider } from '../../providers/port.ts';
import { importSecret, signToken } from '../../shared/http/auth/local-keys.ts';
import { ROUTES, type RouteId } from '../../shared/http/route-table.ts';
import type {} from '../../shared/http/server/app.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { loadConfig } from '../../shared/runtime/load-config.ts';
import { createLogger } from '../../shared/runtime/log.ts';
import { SECRET_ALGORITHM } from '../../shared/runtime/settings/table.ts';
import { isForMerchants, type Recording } from './document.ts';
import { stabilizer } from './stable.ts';

const SECRET = 'the secret that the examples of the documents are signed with';
const SECRETS = { JWT_SECRET: SECRET, IDEMPOTENCY_SECRET: SECRET, WEBHOOK_SECRET: SECRET };
/** A merchant for each route: a limit that another route has drawn on may fill again at any moment. */
export const limitedMerchant = (id: string): string => `m_limited_${id}`;
const LIMIT = { rateLimitPerSecond: 1, rateLimitBurst: 1 };
const MERCHANTS = Object.fromEntries(Object.keys(ROUTES).map((id) => [limitedMerchant(id), LIMIT]));

type Token = readonly [merchant: string, scope?: string, subject?: string];
/** Any other name is a merchant's, with every scope. */
const TOKENS: Readonly<Record<string, Token>> = {
  merchant: ['m_demo'],
  auditor: ['*', 'audit:read ops:admin ops:resolve', 'first operator'],
  withoutScope: ['m_demo', ''],
};
const EVERY_SCOPE = 'payments:read payments:write webhooks:write audit:read ops:admin ops:resolve';

export type Target = { id: RouteId; url: string };

type Sent = {
  body?: object | string;
  /** A name in TOKENS, a merchant or `none`; left out: one that the route takes. */
  token?: string;
  key?: string;
  show?: boolean;
  /** Later steps have `$name` for the id of the payment or endpoint in the response. */
  as?: string;
  until?: RegExp;
};

/** A request (recorded if named), several at once, engine calls replaced until the next such step, or code. */
export type Step =
  | readonly [target: Target, name: string | undefined, sent?: Sent]
  | { atOnce: readonly Step[] }
  | { faults: Partial<ReadModels & Provider> }
  | ((app: FastifyInstance) => unknown);

export type Run = readonly [settings: NodeJS.ProcessEnv, steps: readonly Step[]];

const tokenOf = async (name: string): Promise<string> => {
  const [merchantId, scope, subject]: Token = TOKENS[name] ?? [name, EVERY_SCOPE];
  const signer = { algorithm: SECRET_ALGORITHM, key: await importSecret(SECRET) } as const;
  const claims = { merchantId, merchantClaim: 'merchant_id', ttlSeconds: 600, scope, subject };
  return signToken(signer, claims);
};

type Faults = { calls: object };

const withFaults = <T extends object>(own: T, faults: Faults): T => {
  // The service may copy the functions before a fault is set.
  const get = (target: T, name: string | symbol) => {
    const call: unknown = Reflect.get(target, name);
    if (typeof call !== 'function') return call;
    return (...args: unknown[]) => (Reflect.get(faults.calls, name) ?? call)(...args);
  };
  return new Proxy(own, { get });
};

const openOver = (dataDir: string, settings: NodeJS.ProcessEnv, faults: Faults) => {
  const merchants = join(dataDir, 'merchants.json');
  writeFileSync(merchants, JSON.stringify(MERCHANTS));
  const places = { DATA_DIR: dataDir, MERCHANTS_FILE: merchants };
  const read = loadConfig({ ...places, ...SECRETS, ...settings });
  if (!read.ok) throw new Error(read.problems.join('; '));
  const { log } = createLogger({ level: 'silent', destination: 'stdout' });
  const fatal = (error: Error) => void Promise.reject(error);
  return openService(read.config, openDataFolder(dataDir), log, fatal, {
    provider: (own) => withFaults(own, faults),
    readModels: (own) => withFaults(own, faults),
  });
};

const POLL_MS = 10;
const POLLS_MAX = 500;

const runner = (app: FastifyInstance, faults: Faults, recordings: Recording[]) => {
  const payments = new Map<string, string>();

  const send = async (target: Target, sent: Sent, polls = 0): Promise<LightMyRequestResponse> => {
    const { id, url } = target;
    const fitting = isForMerchants(ROUTES[id]) ? 'merchant' : 'auditor';
    const { body, token = fitting, key, until } = sent;
    const response = await app.inject({
      method: ROUTES[id].method,
      url: url.replace(/\$(\w+)/, (_all, name: string) => payments.get(name) ?? ''),
      headers: {
        ...(token !== 'none' && { authorization: `Bearer ${await tokenOf(token)}` }),
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      ...(body !== undefined && { payload: body }),
    });
    if (until === undefined || until.test(response.body)) return response;
    if (polls === POLLS_MAX) throw new Error(`${id} never responded with ${until}`);
    await setTimeout(POLL_MS);
    return send(target, sent, polls + 1);
  };

  const take = async (step: Step): Promise<void> => {
    if (typeof step === 'function') await step(app);
    else if ('atOnce' in step) await Promise.all(step.atOnce.map(take));
    else if ('faults' in step) faults.calls = step.faults;
    else {
      const [{ id }, name, sent = {}] = step;
      const one = { id, name: name ?? '', status: 0, body: undefined };
      // Requests at once are recorded in the order in which they were sent.
      if (name !== undefined) recordings.push(one);
      const response = await send(step[0], sent);
      const request = sent.show && { request: sent.body };
      Object.assign(one, { status: response.statusCode, body: response.json(), ...request });
      if (sent.as) payments.set(sent.as, /(pay|we|att)_\w{26}/.exec(response.body)?.[0] ?? '');
    }
  };
  return take;
};

export const recordRuns = async (runs: readonly Run[]): Promise<Recording[]> => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'payments-examples-'));
  const recordings: Recording[] = [];
  for (const [settings, steps] of runs) {
    const faults: Faults = { calls: {} };
    const service = await openOver(folder.path, settings, faults);
    try {
      const take = runner(service.app, faults, recordings);
      for (const step of steps) await take(step);
    } finally {
      await service.stop();
    }
  }
  const stable = stabilizer();
  return recordings.map((one) => ({ ...one, body: stable(one.body) }));
};
