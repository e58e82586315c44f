/** Which tokens each route of the table takes (A1, A2, gaps §1). */
import { afterAll, describe, expect, test } from '@jest/globals';
import { SCOPES, type Scope } from '../../shared/http/request.ts';
import { ROUTES, type RouteId, SIGNED } from '../../shared/http/route-table.ts';
import { expectError, openInProcess, signToken, token } from '../support/service-in-process.ts';

const service = await openInProcess();
afterAll(() => service[Symbol.asyncDispose]());

/** Of the routes of operators and auditors: a merchant with their scope may ask for what is its own. */
const OF_ONE_TOO: RouteId[] = [
  'searchPayments',
  'paymentEvents',
  'paymentState',
  'verifyPayment',
  'explainCommand',
  'readLog',
  'streamLog',
  'exportEvents',
  'verifyLog',
  'reconcilePayment',
  'listUnresolved',
  'listAttention',
  'acknowledgeAttention',
  'listParked',
  'retryParked',
  'erasePayment',
  'holdErasure',
  'releaseErasure',
  'searchPeople',
];
/** Of these it is recorded who did it, so a token names the person. */
const BY_A_PERSON: RouteId[] = [
  'acknowledgeReconciliation',
  'resolvePayment',
  'acknowledgeAttention',
  'acknowledgeBreak',
  'erasePayment',
  'holdErasure',
  'releaseErasure',
];
const ONE_ALONE =
  'the token is for all merchants; make one for a single merchant: payments token --merchant <id>';

const scopeOf = (method: string, path: string): Scope => {
  if (path.startsWith('/audit/')) return 'audit:read';
  if (/\/(erase|people)\b/.test(path)) return 'ops:erase';
  if (path.startsWith('/ops/')) return path.endsWith('/resolve') ? 'ops:resolve' : 'ops:admin';
  if (method === 'GET') return 'payments:read';
  return path.includes('/webhook-endpoints') ? 'webhooks:write' : 'payments:write';
};

const rows = Object.entries(ROUTES)
  .filter(([, { scope }]) => scope !== SIGNED)
  .map(([id, { method, path }]) => ({ id, method, path, scope: scopeOf(method, path) }));

describe('A1, A2: a token for each route', () => {
  test.each(rows)('$method $path: $scope', async ({ id, method, path, scope }) => {
    const ask = (bearer: string | null) =>
      service.ask(method, path.replace(/:\w+/, 'pay_x'), '{', { token: bearer });
    const none = await ask(null);
    expectError(none, 401, 'UNAUTHORIZED', ['the Authorization header is required']);
    expect(none.headers).toMatchObject({ 'www-authenticate': 'Bearer' });
    const others = SCOPES.filter((other) => other !== scope).join(' ');
    const weak = await ask(await token('m_test', others));
    expectError(weak, 403, 'FORBIDDEN', [`the scope ${scope} is required`]);
    const all = await ask(await token('*', others));
    const ofOne = path.startsWith('/api/');
    expectError(all, 403, 'FORBIDDEN', [ofOne ? ONE_ALONE : `the scope ${scope} is required`]);
    if (ofOne || OF_ONE_TOO.includes(id as RouteId)) return;
    const one = await ask(await token('m_test', scope));
    expectError(one, 403, 'FORBIDDEN', ['a token of all merchants is required']);
  });
});

test.each(rows.filter(({ id }) => BY_A_PERSON.includes(id as RouteId)))(
  'gaps §16, §25: $method $path needs a token with sub',
  async ({ method, path, scope }) => {
    const nameless = { token: await signToken({ merchant_id: '*', scope }) };
    const response = await service.ask(method, path.replace(/:\w+/, 'pay_x'), '{', nameless);
    expectError(response, 403, 'FORBIDDEN', ['this command needs a token with sub']);
  },
);
