/** `payments trigger`, `seed` and `docs` as a developer types them, against a running service. */
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { SCENARIO_NAMES } from '../../cli/dev/scenarios.ts';
import { withOverrides } from '../../cli/dev/trigger.ts';
import { TEST_CARDS } from '../../providers/simulator/test-cards.ts';
import { runCli } from '../support/cli.ts';
import { httpServer } from '../support/faulty-server.ts';
import { startInProcess } from '../support/service-in-process.ts';
import { AWAITED_MS } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';

// Card 4228 takes all of it, and card 4269 two seconds.
const env = { PROVIDER_TIMEOUT_MS: String(2 * AWAITED_MS) };
const service = await startInProcess({ env });
afterAll(() => service[Symbol.asyncDispose]());

const cli = (...args: string[]) =>
  runCli(args, { DATA_DIR: service.dataDir, PAYMENTS_URL: service.url, NO_COLOR: '1' });

const JWT = /eyJ[\w-]+\.eyJ/;

describe('payments trigger', () => {
  test('full-story prints each request as curl without the token, its response and its events', async () => {
    const { code, stdout, stderr } = await cli('trigger', 'full-story', '--amount', '1000');
    expect(code).toBe(0);
    expect(stdout.match(/^curl .*$/gm)).toHaveLength(5);
    expect(stdout.match(/authorization: Bearer \$TOKEN"/g)).toHaveLength(5);
    expect(stdout).not.toMatch(JWT);
    const events = stdout.match(/^ {2}r\d+ {2}\w+ {2}[\d.]+ USD$/gm);
    expect(events).toEqual([
      '  r0  PaymentCreated  10.00 USD',
      '  r1  PaymentAuthorized  10.00 USD',
      '  r2  PaymentCaptureRequested  6.00 USD',
      '  r3  PaymentCaptured  6.00 USD',
      '  r4  PaymentRefundRequested  3.60 USD',
      '  r5  PaymentRefunded  3.60 USD',
      '  r6  PaymentRefundRequested  2.40 USD',
      '  r7  PaymentRefunded  2.40 USD',
    ]);
    expect(stdout).toContain('"status": "REFUNDED"');
    expect(stderr).toMatch(/payments events pay_/);
    const cards = new Set(stdout.match(/"number":"\d+"/g));
    expect([...cards]).toEqual(['"number":"4242424242424242"']);
    expect(TEST_CARDS.map(({ number }) => number)).toContain('4242424242424242');
  });

  /** What comes of a payment later: the events that tell it, and the status of each request. */
  const LATER: Record<string, [types: string[], statuses: number[]]> = {
    unknown: [['PaymentAuthorized'], [503, 200]],
    'authorization-expired': [['PaymentAuthorizationExpired'], [200, 200, 422]],
    authentication: [
      ['PaymentAuthenticationRequested', 'PaymentAuthorized'],
      [202, 303, 200],
    ],
    'refund-failed': [
      ['PaymentRefunded', 'PaymentRefundFailed'],
      [200, 200, 200],
    ],
    'refund-observed': [['PaymentRefundObserved'], [200, 200]],
    'capture-observed': [['PaymentCaptureObserved'], [200, 200, 422]],
    'void-observed': [['PaymentVoidObserved'], [200, 200, 422]],
    dispute: [['PaymentDisputed'], [200, 200, 422]],
    'dispute-won': [
      ['PaymentDisputed', 'PaymentDisputeClosed'],
      [200, 200, 200],
    ],
    'dispute-lost': [
      ['PaymentDisputed', 'PaymentDisputeClosed'],
      [200, 200, 422],
    ],
  };

  test('each of them is a scenario', () => {
    expect(SCENARIO_NAMES).toEqual(expect.arrayContaining(Object.keys(LATER)));
  });

  test.each(SCENARIO_NAMES.filter((name) => name !== 'full-story'))(
    '%s comes to its end, and shows what comes of a payment later',
    async (scenario) => {
      const { code, stdout } = await cli('trigger', scenario, '--format', 'json');
      expect(code).toBe(0);
      const steps: { status: number; events: { type: string }[] }[] = JSON.parse(stdout);
      const types = steps.flatMap(({ events }) => events.map(({ type }) => type));
      const [later, statuses] = LATER[scenario] ?? [[], steps.map(({ status }) => status)];
      expect(steps.map(({ status }) => status)).toEqual(statuses);
      expect(types).toEqual(expect.arrayContaining(later));
    },
  );

  test('what only the simulator does is not tried with another provider', async () => {
    const other = await httpServer((_, response) =>
      response.end('{"engines":{"provider":{"state":"up","stripe":"test","simulated":false}}}'),
    );
    const env = { PAYMENTS_URL: other.url, PAYMENTS_TOKEN: 't' };
    const { code, stdout, stderr } = await runCli(['trigger', 'dispute'], env);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^payments: dispute needs the simulated provider/);
    expect(other.requests).toEqual(['GET /health/ready']);
    await other.close();
  });

  test('an override reaches the request; a response that ends the story is exit code 1', async () => {
    const fields = ['consumer.email=ada', 'consumer.firstName=5', 'currency=EUR'];
    const set = fields.flatMap((field) => ['--set', field]);
    const { code, stdout, stderr } = await cli('trigger', 'sale', ...set, '--format', 'json');
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject([
      {
        request: { body: { consumer: { email: 'ada', firstName: '5' }, currency: 'EUR' } },
        status: 422,
        response: { error: 'BUSINESS_RULE_VIOLATION' },
      },
    ]);
    expect(stderr).toMatch(/^payments: sale got the response 422/);
  });

  test('wrong usage is reported before the first request, exit code 2', async () => {
    const counting = await httpServer((_, response) => response.end('{}'));
    const env = { PAYMENTS_URL: counting.url, PAYMENTS_TOKEN: 't' };
    const wrong: [string[], RegExp][] = [
      [['sale', '--set', 'consumer.mail=x'], /no field consumer\.mail/],
      [['sale', '--amount', '0.5'], /integer of minor units/],
      [['full-story', '--amount', '3'], /needs at least 4/],
    ];
    for (const [args, why] of wrong) {
      const { code, stdout, stderr } = await runCli(['trigger', ...args], env);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(why);
    }
    expect(counting.requests).toEqual([]);
    await counting.close();
  });
});

test.each([
  ['paymentMethod.card.number=4012888888881881', /only test cards/],
  ['amount', /must be path=value/],
  ['consumer.__proto__.x=1', /no field/],
  ['productItems[0].price=1', /no field/],
])('the override %s is refused', (override, why) => {
  expect(() => withOverrides({ amount: 1 }, [override])).toThrow(why);
});

test('overrides of text fields stay text, the others are read as JSON', () => {
  const set = ['merchantReference=5', 'amount=5', 'captureNow=true', 'productItems[0].quantity=2'];
  expect(withOverrides({ currency: 'USD' }, set)).toEqual({
    currency: 'USD',
    merchantReference: '5',
    amount: 5,
    captureNow: true,
    productItems: [{ quantity: 2 }],
  });
});

test('payments seed makes payments of every kind and prints its progress in lines', async () => {
  const merchant = await service.token('m_seed');
  const { code, stdout, stderr } = await runCli(['seed', '20', '--format', 'json'], {
    PAYMENTS_URL: service.url,
    PAYMENTS_TOKEN: merchant,
  });
  expect(code).toBe(0);
  expect(stderr).toMatch(/^seed 100% {2}20\/20 {2}[\d,]+\/s$/m);
  expect(JSON.parse(stdout)).toMatchObject({
    payments: 20,
    statuses: { AUTHORIZED: 4, CAPTURED: 10, REFUNDED: 4, FAILED: 2 },
  });
  const headers = { authorization: `Bearer ${merchant}` };
  const { json } = await service.get('/api/v1/payments?limit=100', headers);
  expect(json.payments).toHaveLength(20);
});

test('payments docs prints the address of the page with a token that the service accepts', async () => {
  const { code, stdout } = await cli('docs');
  expect(code).toBe(0);
  const [, address, token] = /^(http:\S+)#token=(\S+)\n$/.exec(stdout) ?? [];
  expect(address).toBe(`${service.url}/docs`);
  const headers = { authorization: `Bearer ${token}` };
  expect((await service.get('/api/v1/payments', headers)).status).toBe(200);
  expect((await service.get('/audit/v1/payments', headers)).status).toBe(200);
});

test('payments console prints its address with a token for the reader it is for', async () => {
  const statusOf = async (path: string, ...args: string[]): Promise<number> => {
    const { code, stdout } = await cli('console', ...args);
    const [, address, token] = /^(http:\S+)#token=(\S+)\n$/.exec(stdout) ?? [];
    expect([code, address]).toEqual([0, `${service.url}/console`]);
    return (await service.get(path, { authorization: `Bearer ${token}` })).status;
  };
  expect(await statusOf('/ops/v1/log')).toBe(200);
  expect(await statusOf('/ops/v1/log', '--as', 'auditor')).toBe(403);
  expect(await statusOf('/audit/v1/payments', '--as', 'auditor')).toBe(200);
  expect(await statusOf('/api/v1/payments', '--as', 'merchant', '--merchant', 'm_1')).toBe(200);
  expect((await cli('console', '--as', 'stranger')).code).toBe(2);
});

describe('a token that the service does not take', () => {
  const find = (env: Record<string, string>) =>
    runCli(['find'], { PAYMENTS_URL: service.url, DATA_DIR: service.dataDir, ...env });

  test.each([
    [
      'was signed with the key of another folder: that folder is named',
      () => ({ DATA_DIR: join(service.dataDir, 'another') }),
      /; the token was signed with the key in .*\/another: set DATA_DIR, or JWT_SECRET, as the service has it, or PAYMENTS_TOKEN to a valid token\n$/,
    ],
    [
      'was signed with a secret that the service does not have: its setting is named',
      () => ({ JWT_SECRET: 'another secret, of 32 bytes at least' }),
      /; the token was signed with JWT_SECRET: set DATA_DIR, /,
    ],
    [
      'is to come from an issuer: no key of this machine is advised',
      () => ({
        ...{ PAYMENTS_TOKEN: 'a.b.c', JWT_JWKS_URL: 'https://sso.example/jwks' },
        ...{ JWT_ISSUER: 'sso', JWT_AUDIENCE: 'payments' },
      }),
      /; set PAYMENTS_TOKEN to such a token of the issuer$/m,
    ],
    [
      'was given: its variable is named',
      () => ({ PAYMENTS_TOKEN: 'a.b.c' }),
      /; set PAYMENTS_TOKEN to a valid token, or unset it, /,
    ],
  ])('%s', async (_what, env, next) => {
    const { code, stderr } = await find(env());
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^payments: UNAUTHORIZED: /)]);
    expect(stderr).toMatch(next);
  });
});

describe('gaps §13: whatever the scenarios above and each test card do', () => {
  const PAYMENTS = '/api/v1/payments';

  /** A payment by this card, as far as the card lets it go. */
  const useCard = async (number: string): Promise<void> => {
    const card = { number, holderName: 'Ada', expiryMonth: '12', expiryYear: '2034' };
    const paymentMethod = { type: 'CARD', card };
    const { json } = await service.post(PAYMENTS, { amount: 900, currency: 'USD', paymentMethod });
    const id = json.paymentId ?? /pay_\w+/.exec(JSON.stringify(json.details))?.[0];
    const at = `${PAYMENTS}/${id}`;
    const isPending = async () => (await service.get(at)).json.status === 'PENDING';
    await until(`the outcome of ${number} is known`, async () => !(await isPending()));
    await service.post(`${at}/capture`, {});
    await service.post(`${at}/refund`, { refundAmount: 300 });
  };

  test('log and provider agree about it', async () => {
    await Promise.all(TEST_CARDS.map(({ number }) => useCard(number)));
    const { code, stdout, stderr } = await cli('reconcile');
    expect({ code, stdout, stderr }).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^log and provider agree/),
    });
  });
});
