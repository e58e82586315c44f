/**
 * The contract as a merchant sees it, over real sockets, against each deployment of the service. The
 * responses are the same in all of them; `npm test` takes one.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import { openLocalKeys, signToken as signByKey } from '../../shared/http/auth/local-keys.ts';
import { describeUnless } from '../support/describe-driver.ts';
import { shareOf } from '../support/long-run-share.ts';
import { type CommandResponse, requestsAt } from '../support/service-client.ts';
import { signToken, startInProcess } from '../support/service-in-process.ts';
import { noThreeProcesses, startThreeProcesses } from '../support/service-processes.ts';
import { until } from '../support/until.ts';

/** A deployment as a merchant sees it; each gets merchants of its own run. */
type Deployed = ReturnType<typeof deployed>;

type Deployment = { name: string; skip?: string; start(): Promise<Deployed> };

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
    const service = await startInProcess();
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

const deployments: Deployment[] = [...started, ...running(process.env)];

const PAYMENTS = '/api/v1/payments';

const { merchantReference: _, ...plain } = payment;
const withCard = (number: string, fields: object = {}) => ({
  ...plain,
  ...fields,
  paymentMethod: { type: 'CARD', card: { ...payment.paymentMethod.card, number } },
});
const APPROVED = '4242424242424242';

for (const { name, skip, start } of deployments) {
  describeUnless(skip, `${name}`, () => {
    let service: Deployed;
    beforeAll(async () => {
      service = await start();
    });
    afterAll(() => service?.[Symbol.asyncDispose]());

    const create = (
      number = APPROVED,
      fields: object = {},
      headers = {},
    ): Promise<CommandResponse> => service.post(PAYMENTS, withCard(number, fields), headers);
    const read = (id: string): Promise<CommandResponse> => service.get(`${PAYMENTS}/${id}`);
    const change = (
      id: string,
      kind: string,
      body?: object,
      headers = {},
    ): Promise<CommandResponse> => service.post(`${PAYMENTS}/${id}/${kind}`, body, headers);

    test('gaps §5, §9: authorize, capture a part, refund in two steps; GET gives the bytes of the last response', async () => {
      const created = await create();
      expect([created.status, created.json.status]).toEqual([200, 'AUTHORIZED']);
      const id = created.json.paymentId;
      const responses = [
        created,
        await change(id, 'capture', { captureAmount: 1500 }),
        await change(id, 'refund', { refundAmount: 500 }),
        await change(id, 'refund'),
      ];
      expect(responses.map(({ json }) => json.status)).toEqual([
        'AUTHORIZED',
        'CAPTURED',
        'CAPTURED',
        'REFUNDED',
      ]);
      const last = await read(id);
      expect(last.text).toBe(responses.at(-1)?.text);
      expect(last.headers.get('etag')).toBe(responses.at(-1)?.headers.get('etag'));
      expect(last.json.transactions.map(({ type }) => type)).toEqual([
        'AUTH',
        'CAPTURE',
        'REFUND',
        'REFUND',
      ]);
    });

    test('interface, States: a sale is CAPTURED, a void VOIDED, a decline FAILED', async () => {
      const sale = await create(APPROVED, { captureNow: true });
      expect([sale.status, sale.json.status]).toEqual([200, 'CAPTURED']);
      const voided = await change((await create()).json.paymentId, 'void');
      expect([voided.status, voided.json.status]).toEqual([200, 'VOIDED']);
      const declined = await create('4000000000000002');
      expect([declined.status, declined.json.status]).toEqual([402, 'FAILED']);
      expect((await read(declined.json.paymentId)).status).toBe(200);
    });

    test('gaps §8: a repeat under a key gets the stored bytes, another request under the key is rejected', async () => {
      const key = { 'idempotency-key': `order-${service.merchant}` };
      const [first, second] = await Promise.all([
        create(APPROVED, {}, key),
        create(APPROVED, {}, key),
      ]);
      const third = await create(APPROVED, {}, key);
      expect(new Set([first.text, second.text, third.text]).size).toBe(1);
      expect(third.headers.get('idempotent-replayed')).toBe('true');
      const other = await create(APPROVED, { amount: 1 }, key);
      expect([other.status, other.json.error]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
      const captured = await change(first.json.paymentId, 'capture', {}, key);
      const again = await change(first.json.paymentId, 'capture', {}, key);
      expect([again.status, again.text]).toEqual([200, captured.text]);
    });

    test('gaps §7: an unknown outcome is 503 and is looked up: approved at the provider, the payment ends AUTHORIZED', async () => {
      const unknown = await create('4000000000004236');
      expect([unknown.status, unknown.json.error]).toEqual([503, 'PROVIDER_UNAVAILABLE']);
      const location = unknown.headers.get('location') ?? '';
      await until(
        'the outcome is recorded',
        async () => (await service.get(location)).json.status === 'AUTHORIZED',
      );
    });

    test("A2: another merchant's payment gets the same bytes as an unknown one", async () => {
      const id = (await create()).json.paymentId;
      const foreign = { authorization: `Bearer ${await service.token(`${service.merchant}x`)}` };
      const timeless = ({ status, text }: CommandResponse) => [
        status,
        text.replace(/"timestamp":"[^"]+"/, ''),
      ];
      const unknown = 'pay_00000000000000000000000000';
      expect(timeless(await service.get(`${PAYMENTS}/${id}`, foreign))).toEqual(
        timeless(await service.get(`${PAYMENTS}/${unknown}`, foreign)),
      );
      for (const kind of ['capture', 'void', 'refund']) {
        const [theirs, none] = await Promise.all([
          service.post(`${PAYMENTS}/${id}/${kind}`, {}, foreign),
          service.post(`${PAYMENTS}/${unknown}/${kind}`, {}, foreign),
        ]);
        expect(timeless(theirs)).toEqual(timeless(none));
      }
    });

    test('A3: every error response has the body of the contract, whichever part of the service sends it', async () => {
      const bad = { 'content-type': 'application/json' };
      const responses = [
        await service.send(`${PAYMENTS}/x`, {}),
        await service.get('/nowhere'),
        await service.get(`${PAYMENTS}/a.b`),
        await service.send(PAYMENTS, { method: 'PUT' }),
        await service.post(PAYMENTS, {}),
        await service.post(PAYMENTS, 'x'.repeat(70_000), bad),
      ];
      expect(responses.map(({ status }) => status)).toEqual([401, 404, 400, 405, 400, 413]);
      for (const { json, headers } of responses) {
        expect(Object.keys(json)).toEqual(['error', 'message', 'details', 'timestamp']);
        expect(headers.get('cache-control')).toBe('no-store');
        expect(headers.get('server')).toBeNull();
      }
    });

    test('gaps §10: the routes of auditors and of operators each need their own scope', async () => {
      const sale = await create(APPROVED, { captureNow: true });
      const id = sale.json.paymentId;
      const auditor = { authorization: `Bearer ${await service.token('*', 'audit:read')}` };
      const operator = { authorization: `Bearer ${await service.token('*', 'ops:admin')}` };
      const timeline = await service.get(`/audit/v1/payments/${id}/events`, auditor);
      const events = timeline.json.events as { type: string }[];
      expect(events.map(({ type }) => type)).toEqual([
        'PaymentCreated',
        'PaymentAuthorized',
        'PaymentCaptured',
      ]);
      const personal = await service.token('*', 'audit:read audit:personal');
      const opened = { authorization: `Bearer ${personal}` };
      const then = await service.get(`/audit/v1/payments/${id}/state?revision=2`, opened);
      expect(JSON.stringify(then.json.payment)).toBe(sale.text);
      const explained = `/audit/v1/payments/${id}/explain?command=void`;
      expect((await service.get(explained, auditor)).json).toMatchObject({ allowed: false });
      for (const path of [`/audit/v1/payments/${id}/verify`, '/audit/v1/verify']) {
        expect((await service.get(path, auditor)).json).toMatchObject({ ok: true });
      }
      await until('the search finds it', async () => {
        const { json } = await service.get(`/audit/v1/payments?q=${id}`, auditor);
        return (json.payments as unknown[]).length === 1;
      });
      const reconciled = await service.post('/audit/v1/reconcile', undefined, auditor);
      expect(reconciled.json).toMatchObject({ differences: [] });
      for (const path of ['unresolved', 'parked', 'projections', 'topics']) {
        expect([path, (await service.get(`/ops/v1/${path}`, operator)).status]).toEqual([
          path,
          200,
        ]);
        expect((await service.get(`/ops/v1/${path}`, auditor)).status).toBe(403);
      }
      const messages = await service.get('/ops/v1/topics/events/messages?limit=1000', operator);
      expect(messages.text).toContain(`"subject":"${id}"`);
      expect((await service.get('/docs')).status).toBe(200);
      expect((await service.get('/openapi.json')).json).toMatchObject({ openapi: '3.1.0' });
    });
  });
}
