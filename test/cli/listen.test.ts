/** `payments listen` against a service that ends its connection and then is not there for a while. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, jest, test } from '@jest/globals';
import { NODE, ROOT } from '../support/service.ts';
import { until } from '../support/until.ts';

jest.setTimeout(240_000);

test('F19: waits as long as Retry-After says, which is longer than its own back-off', async () => {
  const requestedAtMs: number[] = [];
  const server = createServer((_request, response) => {
    requestedAtMs.push(performance.now());
    if (requestedAtMs.length === 2) response.writeHead(503, { 'retry-after': '1' }).end('{}');
    else response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': nothing\n\n');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const child = spawn(NODE, ['cli/payments.mjs', 'listen'], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, PAYMENTS_URL: `http://127.0.0.1:${port}`, PAYMENTS_TOKEN: 't' },
    stdio: 'ignore',
  });
  const closed = once(child, 'close');
  try {
    await until('it has asked a third time', () => requestedAtMs.length >= 3);
  } finally {
    child.kill();
    await closed;
    server.close();
  }
  const [, second = 0, third = 0] = requestedAtMs;
  // Both sides round to their own clock's ticks.
  expect(third - second).toBeGreaterThan(980);
});
