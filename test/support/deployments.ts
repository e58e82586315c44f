/**
 * The ways in which the service runs, each behind one base URL: the end-to-end story is told to
 * every one of them. `BASE_URL` adds one that is running already, such as the compose file's; `DATA_DIR`
 * then has to hold the key that its tokens are signed with, as for the command line.
 */
import { randomUUID } from 'node:crypto';
import { openLocalKeys, signToken as signByKey } from '../../shared/http/auth/local-keys.ts';
import { signToken } from './in-process.ts';
import { shareOf } from './long-run-share.ts';
import { requestsAt } from './service.ts';
import { startServiceHere } from './service-here.ts';
import { noThreeProcesses, startThreeProcesses } from './three-processes.ts';

/** A deployment as a merchant sees it; each gets merchants of its own run. */
export type Deployed = ReturnType<typeof deployed>;

export type Deployment = { name: string; skip?: string; start(): Promise<Deployed> };

type TokenOf = (merchant: string, scope?: string) => Promise<string>;

const deployed = (url: string, token: TokenOf, dispose: () => Promise<void>) => {
  const merchant = `m_${randomUUID().slice(0, 8)}`;
  const own = token(merchant);
  return {
    url,
    /** The id of the merchant that `post` and `get` speak for, new in every run. */
    merchant,
    token,
    ...requestsAt(url, () => own),
    [Symbol.asyncDispose]: dispose,
  };
};

const tokensBy =
  (secret: string): TokenOf =>
  (merchant, scope) =>
    signToken({ merchant_id: merchant, sub: 'tester', ...(scope && { scope }) }, secret);

const embedded: Deployment = {
  name: 'embedded',
  start: async () => {
    const service = await startServiceHere();
    return deployed(service.url, service.token, () => service[Symbol.asyncDispose]());
  },
};

const noEngines = noThreeProcesses();
const threeProcesses: Deployment = {
  name: 'three processes',
  ...(noEngines && { skip: noEngines }),
  start: async () => {
    const started = await startThreeProcesses();
    return deployed(started.url, tokensBy(started.env.JWT_SECRET ?? ''), () =>
      started[Symbol.asyncDispose](),
    );
  },
};

const HOUR_SECONDS = 3_600;

const tokensByKeyIn = async ({
  DATA_DIR = '',
  JWT_ISSUER: issuer,
  JWT_AUDIENCE: audience,
}: NodeJS.ProcessEnv): Promise<TokenOf> => {
  const { signer } = await openLocalKeys(DATA_DIR);
  const claims = { merchantClaim: 'merchant_id', subject: 'tester', ttlSeconds: HOUR_SECONDS };
  return (merchantId, scope) =>
    signByKey(signer, { ...claims, merchantId, scope, issuer, audience });
};

const running = (env: NodeJS.ProcessEnv): Deployment[] => {
  const { BASE_URL: url, DATA_DIR } = env;
  if (url === undefined) return [];
  const start = async () => deployed(url, await tokensByKeyIn(env), async () => {});
  if (DATA_DIR !== undefined) return [{ name: url, start }];
  return [{ name: url, skip: 'DATA_DIR with the key of its tokens is not set', start }];
};

/** `npm test` takes the processes where their engines are, else the embedded service. */
const started =
  noEngines === undefined ? shareOf([threeProcesses, embedded], 1) : [embedded, threeProcesses];

export const deployments: Deployment[] = [...started, ...running(process.env)];
