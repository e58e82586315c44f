/** A service that goes away while a verb reads its response: one line, and no stack trace. */
import { afterAll, expect, test } from '@jest/globals';
import { runCli } from '../support/cli.ts';
import { httpServer, rawServer } from '../support/faulty-server.ts';
import { HANGS_MS } from '../support/time-bounds.ts';

let goesAway: boolean;
const server = await httpServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  if (goesAway) response.write(': keep-alive\n\n', () => response.destroy());
  else response.end('<p>Welcome</p>');
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

/** Looks at once whether the service responds, and waits for that for so long. */
const inHaste = async (url: string, args: string[], waitMs: number) => {
  const { setInterval } = globalThis;
  const { timeout } = AbortSignal;
  globalThis.setInterval = ((step: () => void) => setInterval(step, 20)) as typeof setInterval;
  AbortSignal.timeout = () => timeout.call(AbortSignal, waitMs);
  try {
    return await runCli(args, { PAYMENTS_URL: url, PAYMENTS_TOKEN: 'a.b.c' });
  } finally {
    Object.assign(globalThis, { setInterval });
    AbortSignal.timeout = timeout;
  }
};

test.each([[['events', 'pay_1']], [['attention']], [['verify', '--all']]])(
  'payments %j says of a service that takes the connection and never responds that it does not answer',
  async (args) => {
    const silent = await rawServer(() => undefined);
    const { code, stderr } = await inHaste(silent.url, args, 100);
    await silent.close();
    expect([code, stderr]).toEqual([
      1,
      `payments: no service answers at ${silent.url} (it took the connection and does not respond); start it with npm start, or set PAYMENTS_URL\n`,
    ]);
  },
);

test('a service that is at work on a response for long is waited for', async () => {
  let looks = 0;
  let respond = (): unknown => undefined;
  const busy = await httpServer(({ url }, response) => {
    if (url !== '/health/live') respond = () => response.end('{}');
    else response.end();
    if (url === '/health/live') looks += 1;
    if (looks === 3) respond();
  });
  const args = ['events', 'pay_1', '--state', '--format', 'json'];
  const { code } = await inHaste(busy.url, args, HANGS_MS);
  await busy.close();
  expect([code, looks > 2]).toEqual([0, true]);
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
