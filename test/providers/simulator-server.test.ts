/** The simulated provider served over HTTP: what the client of the port never sends (provider.md). */
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { FastifyInstance } from 'fastify';
import { simulatorServer } from '../../providers/simulator/server.ts';
import { openSimulation, type Simulation } from '../../providers/simulator/simulation.ts';
import { APPROVED_CARD } from '../support/provider-operations.ts';
import { folderOfEachTest } from '../support/temporary-folder.ts';
import { LEDGER_FILE } from './opened.ts';

const card = { number: APPROVED_CARD, holderName: 'J', expiryMonth: '12', expiryYear: '2030' };
const sale = { kind: 'SALE', paymentId: 'pay_1', amount: 5, currency: 'USD', card };

describe('provider.md: the simulator over HTTP', () => {
  const folder = folderOfEachTest();
  let simulation: Simulation;
  let app: FastifyInstance;

  beforeEach(() => {
    simulation = openSimulation(join(folder.path, LEDGER_FILE));
    app = simulatorServer({ simulation, token: 'secret' });
  });
  afterEach(async () => {
    await app.close();
    simulation.close();
  });

  const call = async (method: 'GET' | 'PUT' | 'DELETE', url: string, payload?: unknown) => {
    const headers = { authorization: 'Bearer secret', 'content-type': 'application/json' };
    const body = typeof payload === 'string' ? payload : JSON.stringify(payload);
    const sent = payload === undefined ? {} : { payload: body };
    const { statusCode, json } = await app.inject({ method, url, headers, ...sent });
    return { status: statusCode, body: json() };
  };
  const error = { error: expect.any(String) };

  test('the whole outcome, the fence and what follows it', async () => {
    const outcome = {
      operationId: 'a1',
      outcome: 'APPROVED',
      amount: 5,
      currency: 'USD',
      providerReference: expect.any(String),
    };
    expect(await call('PUT', '/operations/a1', sale)).toEqual({ status: 200, body: outcome });
    expect(await call('DELETE', '/operations/a1')).toEqual({ status: 200, body: outcome });
    const fenced = { operationId: 'a2', outcome: 'FENCED' };
    expect(await call('DELETE', '/operations/a2')).toEqual({ status: 200, body: fenced });
    expect(await call('GET', '/operations/a2')).toEqual({ status: 404, body: error });
    expect(await call('PUT', '/operations/a2', sale)).toEqual({ status: 409, body: fenced });
  });

  test('a shopper is led back to an address with letters that no header takes', async () => {
    const asking = {
      ...sale,
      card: { ...card, number: '4000000000003220' },
      authentication: { returnUrl: 'https://日本.example/é' },
    };
    const { body } = await call('PUT', '/operations/a1', asking);
    const { pathname } = new URL(body.nextAction.url);
    const led = await app.inject({ method: 'POST', url: `${pathname}/authenticate` });
    expect([led.statusCode, led.headers.location]).toEqual([
      303,
      'https://xn--wgv71a.example/%C3%A9',
    ]);
  });

  test.each([
    ['no JSON', '{'],
    ['nothing', ''],
    ['no card', { ...sale, card: undefined }],
    ['another kind', { ...sale, kind: 'CHARGE' }],
    ['no amount', { ...sale, amount: 0 }],
    ['a capture of nothing', { ...sale, kind: 'CAPTURE' }],
  ])('a body that is %s: 400, and nothing carried out', async (_name, body) => {
    expect(await call('PUT', '/operations/a1', body)).toEqual({ status: 400, body: error });
    expect(simulation.list(0, 1).entries).toEqual([]);
  });

  test.each(['a%20b', 'a%2Fb', '%00', 'x'.repeat(65), 'x'.repeat(5000)])(
    'an id of another form is 400 (%#)',
    async (id) => {
      for (const method of ['GET', 'DELETE'] as const) {
        expect(await call(method, `/operations/${id}`)).toEqual({ status: 400, body: error });
      }
      expect(await call('PUT', `/operations/${id}`, sale)).toEqual({ status: 400, body: error });
    },
  );

  test('a body over 64 KiB is 413, another address 404, a page that is no number 400', async () => {
    const long = { ...sale, descriptor: 'x'.repeat(70_000) };
    expect(await call('PUT', '/operations/a1', long)).toEqual({ status: 413, body: error });
    expect(await call('GET', '/elsewhere')).toEqual({ status: 404, body: error });
    expect(await call('GET', '/operations?after=x')).toEqual({ status: 400, body: error });
    expect(await call('GET', '/operations?limit=0')).toEqual({ status: 400, body: error });
    expect(await call('GET', '/operations?since=x')).toEqual({ status: 400, body: error });
  });

  test('without the token: 401 everywhere but on health and metrics', async () => {
    for (const headers of [{}, { authorization: 'Bearer other' }, { authorization: 'secret' }]) {
      const response = await app.inject({ method: 'PUT', url: '/operations/a1', headers });
      expect([response.statusCode, response.json()]).toEqual([401, error]);
    }
    for (const url of ['/health/live', '/health/ready', '/metrics'])
      expect((await app.inject({ url })).statusCode).toBe(200);
  });
});
