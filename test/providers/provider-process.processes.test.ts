/** `npm run start:provider`: the simulated provider as a process (docs/settings.md, docs/provider.md). */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { httpProvider } from '../../providers/http/provider.ts';
import type { Provider, ProviderOutcome } from '../../providers/port.ts';
import { VERSION } from '../../shared/runtime/version.ts';
import { testUnless } from '../support/describe-driver.ts';
import { noFailingDisk, openFailingDisk } from '../support/failing-disk.ts';
import { withLog } from '../support/logged-provider.ts';
import { shareOf } from '../support/long-run-share.ts';
import { authorize } from '../support/provider-operations.ts';
import { cleanEnv, LAUNCHER, NODE } from '../support/service-processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { HANGS_MS, STOP_MS_MAX } from '../support/time-bounds.ts';
import { until, within } from '../support/until.ts';

const TOKEN = 'token-of-the-process';

const folder = temporaryFolder();
const children: ChildProcess[] = [];
const clients: Provider[] = [];

afterAll(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  for (const client of clients.splice(0)) await client.close();
  folder.remove();
});

const run = (settings: NodeJS.ProcessEnv) => {
  const env = { ...cleanEnv(), PORT: '0', DATA_DIR: folder.path, ...settings };
  const child = spawn(NODE, [LAUNCHER, 'providers/simulator/main.ts'], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  return { child, exited };
};
const start = async (settings: NodeJS.ProcessEnv = {}) => {
  const { child, exited } = run({ PROVIDER_TOKEN: TOKEN, ...settings });
  let out = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data) => {
      out += data;
    });
  }
  const listens = /^simulated provider listens on (http:\S+)$/m;
  await until('the provider listens', () => listens.test(out));
  const url = listens.exec(out)?.[1] ?? '';
  const times = { connectTimeoutMs: HANGS_MS, timeoutMs: HANGS_MS };
  const client = withLog(httpProvider({ url, token: TOKEN, ...times }));
  clients.push(client);
  return { child, exited, url, client, output: () => out };
};
type Running = Awaited<ReturnType<typeof start>>;
const rejection = async (settings: NodeJS.ProcessEnv) => {
  const { child, exited } = run(settings);
  const [code, stderr] = await Promise.all([exited, text(child.stderr)]);
  return { code, lines: stderr.trimEnd().split('\n') };
};

const missing = noFailingDisk();

describe('settings: the simulated provider as a process', () => {
  const disk = missing === undefined ? openFailingDisk() : undefined;
  const calls = Array.from({ length: 50 }, () => authorize());
  let responses: ProviderOutcome[];
  let first: Running;
  let second: Running;
  beforeAll(async () => {
    first = await start(disk?.envOf('provider-ledger.sqlite-wal'));
    responses = await Promise.all(calls.map((call) => first.client.execute(call)));
  });

  testUnless(missing, 'an operation is on the disk before its answer', async () => {
    disk?.fail();
    expect((await first.client.execute(authorize())).outcome).toBe('UNKNOWN');
    disk?.remove();
  });

  test('the provider responds, keeps its ledger over kill -9, logs no card, and asks for its token', async () => {
    expect(new Set(responses.map(({ outcome }) => outcome))).toEqual(new Set(['APPROVED']));
    first.child.kill('SIGKILL');
    await first.exited;
    second = await start();
    expect(await Promise.all(calls.map((call) => second.client.lookUp(call)))).toEqual(responses);
    expect(first.output()).not.toMatch(/"4242"|42424242|Jane/);

    // Health and metrics need no token, operations do.
    for (const [path, body] of [
      ['/health/live', { status: 'live', version: VERSION }],
      ['/health/ready', { status: 'ready', engines: { ledger: { state: 'up' } } }],
    ] as const) {
      const response = await fetch(second.url + path);
      expect([response.status, await response.json()]).toEqual([200, body]);
    }
    const metrics = await (await fetch(`${second.url}/metrics`)).text();
    expect(metrics).toContain(
      'http_server_request_duration_seconds_count{http_request_method="GET"',
    );
    expect((await fetch(`${second.url}/operations`)).status).toBe(401);
  });

  test('a busy port, a ledger in use, an impossible folder and wrong settings each end the start with exit code 1', async () => {
    const port = new URL(second.url).port;
    const elsewhere = join(folder.path, 'second');
    const inFile = join(folder.path, 'provider-ledger.sqlite', 'x');
    const oneLine = (word: string) => ({ code: 1, lines: [expect.stringContaining(word)] });
    const bothLines = [expect.stringContaining('PORT'), expect.stringContaining('LOG_LEVEL')];
    const refused: [NodeJS.ProcessEnv, object][] = [
      [{ PORT: port, DATA_DIR: elsewhere }, oneLine('PORT')],
      [{}, oneLine('another process')],
      [{ DATA_DIR: inFile }, oneLine('DATA_DIR')],
      [
        { PORT: 'x', LOG_LEVEL: 'y' },
        { code: 1, lines: expect.arrayContaining(bothLines) },
      ],
    ];
    const starts = shareOf(refused, 1).map(([settings]) => rejection(settings));
    expect(await Promise.all(starts)).toEqual(shareOf(refused, 1).map(([, refusal]) => refusal));
  });

  test.each(shareOf(['SIGTERM', 'SIGINT'] as const, 1))(
    'V2: %s, sent twice: exit code 0 within 10 s, with a kept-alive connection and a hanging call',
    async (signal) => {
      if (second.child.exitCode !== null) second = await start();
      const { child, exited, client } = second;
      await client.execute(authorize());
      const hanging = client.execute(authorize('4000000000004228'));
      // This response comes after the hanging call has arrived, for one process gets both.
      await client.lookUp(authorize());
      child.kill(signal);
      child.kill(signal);
      expect(await within(STOP_MS_MAX, () => exited)).toBe(0);
      // The ending process cuts the call off; the client would have waited for a minute.
      expect(await hanging).toEqual({ outcome: 'UNKNOWN', reason: 'broken' });
    },
  );
});
