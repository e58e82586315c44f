/** `payments listen` against a service that ends its connection and then is not there for a while. */
import type { ServerResponse } from 'node:http';
import { expect, test } from '@jest/globals';
import { runCli } from '../support/cli.ts';
import { httpServer } from '../support/faulty-server.ts';

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
    const { url, close } = await httpServer((_request, response) => {
      responses[requestedAtMs.length]?.(response);
      requestedAtMs.push(performance.now());
    });
    expect((await runCli(args, { PAYMENTS_URL: url, PAYMENTS_TOKEN: 't' })).code).toBe(1);
    await close();
    const [, second = 0, third = 0, ...fourth] = requestedAtMs;
    expect(fourth).toHaveLength(1);
    // Both sides round to their own clock's ticks.
    expect(third - second).toBeGreaterThan(980);
  },
);
