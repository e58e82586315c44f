/**
 * SIGTERM as settings, "Commands" has it: readiness off, in-flight requests answered, everything
 * durable, exit code 0 within 10 s, nothing left running; a second signal changes nothing.
 */
import { readFileSync } from 'node:fs';
import os from 'node:os';
import { describe, expect, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import { httpServer } from '../support/faulty-server.ts';
import { openPaymentsIn } from '../support/ledger-and-log.ts';
import { shareOf, testOfLongRun } from '../support/long-run-share.ts';
import { rawClient } from '../support/raw-client.ts';
import { startInProcess } from '../support/service-in-process.ts';
import { spawnService, startService } from '../support/service-processes.ts';
import { folderOfTests } from '../support/temporary-folder.ts';
import { AWAITED_MS, STOP_MS_MAX } from '../support/time-bounds.ts';
import { until, within } from '../support/until.ts';

const IN_FLIGHT = 12;

const { card } = payment.paymentMethod;
const slow = {
  ...payment,
  paymentMethod: { type: 'CARD', card: { ...card, number: '4000000000004269' } },
};

const folder = folderOfTests();

/** Their lines fill the pipe of the log, and what Node reads of it by itself. */
const LOGGED = 1_500;

/** Whether a process has a handler for the signal of this number, as Linux tells it. */
const catches = (pid: number, signal: number): boolean => {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mask = BigInt(`0x${/^SigCgt:\s*(\w+)$/m.exec(status)?.[1] ?? '0'}`);
  return (mask & (1n << BigInt(signal - 1))) !== 0n;
};

const isRefused = async (url: string): Promise<boolean> =>
  fetch(`${url}/health/live`).then(
    ({ status }) => status === 503,
    () => true,
  );

describe('V2: a stop', () => {
  test('SIGTERM with requests in flight: each gets its response, none is lost, exit code 0 within 10 s, also while it is loaded', async () => {
    const early = await spawnService({ dataDir: folder });
    await until('the launcher runs', () => catches(early.pid, os.constants.signals.SIGUSR2));
    early.kill('SIGUSR2');
    early.kill('SIGTERM');
    expect(await early.exited).toEqual({ code: 0, signal: null });
    expect(early.stderr()).toBe('');
    // The next start finds nothing in its way.
    await using service = await startService({ dataDir: folder });
    service.kill('SIGUSR2');
    const token = await service.token();
    const idle = rawClient(service.port, 'GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n');
    const silent = rawClient(service.port, '');
    const auditor = await service.token('*', 'audit:read');
    const stream = `GET /audit/v1/events/stream HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${auditor}`;
    const reader = rawClient(service.port, `${stream}\r\naccept: text/event-stream\r\n\r\n`);
    await until('the stream is open', () => reader.received().includes('text/event-stream'));
    const late = rawClient(service.port, 'GET /api/v1/payments/pay_1 HTTP/1.1\r\nhost: a\r\n');
    await until('the idle client has its answer', () => idle.received().includes('"live"'));
    const inFlight = Array.from({ length: IN_FLIGHT }, () =>
      service.post('/api/v1/payments', slow),
    );
    await until('all are in flight', () => openPaymentsIn(folder).length === IN_FLIGHT);

    service.kill('SIGTERM');
    const exited = within(STOP_MS_MAX, () => service.exited);
    await until('new requests are refused', () => isRefused(service.url));
    late.socket.write(`authorization: Bearer ${token}\r\n\r\n`);
    service.kill('SIGTERM');
    const responses = await Promise.all(inFlight);
    expect(responses.map(({ status }) => status)).toEqual(Array(IN_FLIGHT).fill(200));
    expect(responses.map(({ json }) => json.status)).toEqual(Array(IN_FLIGHT).fill('AUTHORIZED'));
    expect(await exited).toEqual({ code: 0, signal: null });
    await Promise.all([idle.closed, silent.closed, reader.closed, late.closed]);

    const [head = '', body = '{}'] = late.received().split('\r\n\r\n');
    expect(head).toMatch(/^HTTP\/1\.1 503 /);
    expect(head.toLowerCase()).toContain('connection: close');
    expect(head.toLowerCase()).toContain('retry-after:');
    expect(JSON.parse(body)).toEqual({
      error: 'SERVICE_UNAVAILABLE',
      message: expect.any(String),
      details: expect.any(Array),
      timestamp: expect.any(String),
    });
    expect(openPaymentsIn(folder)).toEqual([]);
  });

  testOfLongRun(
    'SIGHUP where stdout has no reader and stderr is closed: what is in flight gets its response, exit code 0 within 10 s',
    async () => {
      await using service = await startService({ unread: true });
      const request = 'GET /api/v1/payments/pay_1 HTTP/1.1\r\nhost: a\r\n\r\n';
      const busy = rawClient(service.port, request.repeat(LOGGED));
      await until(
        'all are logged',
        () => busy.received().split('HTTP/1.1 401 ').length === LOGGED + 1,
      );
      const inFlight = service.post('/api/v1/payments', slow);
      await until('it is in flight', () => openPaymentsIn(service.dataDir).length === 1);
      service.kill('SIGHUP');
      const exited = within(STOP_MS_MAX, () => service.exited);
      expect((await inFlight).status).toBe(200);
      expect(await exited).toEqual({ code: 0, signal: null });
      busy.socket.destroy();
    },
  );

  // The second time limit is as long as the stop may take.
  test.each(shareOf([{ timeoutMs: AWAITED_MS }, { timeoutMs: 10_000 }], 1))(
    'while the provider answers nothing for $timeoutMs ms: 503, no look-up begins, and it has stopped within 10 s',
    async ({ timeoutMs }) => {
      // Its ledger, which the service looks at when it starts, is empty.
      const provider = await httpServer(({ method, url = '' }, response) => {
        if (url.includes('?after=')) response.end('{"operations":[],"next":null}');
        else if (method === 'PUT') calls.push(url);
        else lookUps.push(url);
      });
      const [calls, lookUps]: [string[], string[]] = [[], []];
      try {
        const env = { PROVIDER_URL: provider.url, PROVIDER_TIMEOUT_MS: String(timeoutMs) };
        await using service = await startInProcess({ env });
        const response = service.post('/api/v1/payments', payment);
        await until('the provider is called', () => calls.length === 1);
        const stopped = within(STOP_MS_MAX, service[Symbol.asyncDispose]);
        expect((await response).json).toMatchObject({ error: 'PROVIDER_UNAVAILABLE' });
        await stopped;
        expect([calls.length, lookUps]).toEqual([1, []]);
      } finally {
        await provider.close();
      }
    },
  );
});
