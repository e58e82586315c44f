/** A service that goes away while a verb reads its response: one line, and no stack trace. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { runCli } from '../support/cli.ts';

let server: Server;
let url: string;
let goesAway: boolean;

beforeAll(async () => {
  server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    if (goesAway) response.write(': keep-alive\n\n', () => response.destroy());
    else response.end('<p>Welcome</p>');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.close();
});

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
  const { code, stderr } = await runCli(args, { PAYMENTS_URL: url, PAYMENTS_TOKEN: 'a.b.c' });
  expect([code, stderr]).toEqual([1, `payments: ${why}\n`]);
});

test('another server at the address is named as that', async () => {
  goesAway = false;
  const env = { PAYMENTS_URL: url, PAYMENTS_TOKEN: 'a.b.c' };
  const { code, stderr } = await runCli(['find', '4242'], env);
  expect([code, stderr]).toEqual([
    1,
    'payments: the response is no JSON; is PAYMENTS_URL the address of the service?\n',
  ]);
});
