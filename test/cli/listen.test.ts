/** `payments listen` against a service that ends its connection and then is not there for a while. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, jest, test } from '@jest/globals';
import { runCli } from '../support/cli.ts';

jest.setTimeout(240_000);

test.each([
  ['', ['listen'], ': nothing\n\n'],
  [
    ' --forward-to',
    ['listen', '--forward-to', 'http://127.0.0.1:9/'],
    'event: ready\ndata: {"secret":"whsec_"}\n\n',
  ],
])(
  'listen%s waits as long as Retry-After says, which is longer than its own back-off',
  async (_, args, events) => {
    const stream = (response: ServerResponse) =>
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(events);
    const requestedAtMs: number[] = [];
    const responses = [
      stream,
      (response: ServerResponse) => response.writeHead(503, { 'retry-after': '1' }).end('{}'),
      stream,
      // Any other rejection ends the command.
      (response: ServerResponse) => response.writeHead(401).end('{}'),
    ];
    const server = createServer((_request, response) => {
      responses[requestedAtMs.length]?.(response);
      requestedAtMs.push(performance.now());
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    try {
      const env = { PAYMENTS_URL: `http://127.0.0.1:${port}`, PAYMENTS_TOKEN: 't' };
      expect((await runCli(args, env)).code).toBe(1);
    } finally {
      server.close();
    }
    const [, second = 0, third = 0, ...fourth] = requestedAtMs;
    expect(fourth).toHaveLength(1);
    // Both sides round to their own clock's ticks.
    expect(third - second).toBeGreaterThan(980);
  },
);
