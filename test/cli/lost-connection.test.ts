/** A service that goes away while a verb reads its response: one line, and no stack trace. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { runCli } from '../support/cli.ts';
import { type FaultyServer, httpServer } from '../support/faulty-server.ts';

let server: FaultyServer;
let goesAway: boolean;

beforeAll(async () => {
  server = await httpServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    if (goesAway) response.write(': keep-alive\n\n', () => response.destroy());
    else response.end('<p>Welcome</p>');
  });
});
afterAll(() => server.close());

test.each([
  [['verify', '--all'], 'the connection was lost before the result; start the verification again'],
  [
    ['verify', '--read-models'],
    'the connection was lost before the result; start the comparison again',
  ],
  [
    ['projections', 'rebuild', '--yes'],
    'the connection to the projector was lost; the state of the rebuild: payments projections status',
  ],
  [
    ['find', '4242'],
    'the connection was lost before the end of the response (UND_ERR_SOCKET); a command that changes something may have been carried out',
  ],
])('payments %j says that the connection was lost', async (args, why) => {
  goesAway = true;
  const { code, stderr } = await runCli(args, {
    PAYMENTS_URL: server.url,
    PAYMENTS_TOKEN: 'a.b.c',
  });
  expect([code, stderr]).toEqual([1, `payments: ${why}\n`]);
});

test('another server at the address is named as that', async () => {
  goesAway = false;
  const env = { PAYMENTS_URL: server.url, PAYMENTS_TOKEN: 'a.b.c' };
  const { code, stderr } = await runCli(['find', '4242'], env);
  expect([code, stderr]).toEqual([
    1,
    'payments: the response is no JSON; is PAYMENTS_URL the address of the service?\n',
  ]);
});
