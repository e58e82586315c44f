/** `payments listen --forward-to` and the receivers to copy: the very messages of an endpoint. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { endpointKey, secretTextOf, signedHeaders } from '../../webhooks/signer.ts';
import { runCli } from '../support/cli.ts';
import { freePort } from '../support/free-port.ts';
import { type StartedInProcess, startInProcess } from '../support/service-in-process.ts';
import { NODE, ROOT } from '../support/service-processes.ts';
import { until } from '../support/until.ts';
import { allMessages } from '../support/webhook-merchant.ts';
import { startReceiver, verified, type WebhookReceiver } from '../support/webhook-receiver.ts';

/** A request whose sender keeps the rest of its body. */
const HELD_BACK = 'POST /hook HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc';

describe('the receivers to copy', () => {
  const key = endpointKey('a secret of the tests', 'we_1', 1);

  test.each<readonly [string, string]>([
    ['receiver.mjs', NODE],
    // Where the machine has no Python, its receiver is not tried.
    ...(spawnSync('python3', ['--version']).status === 0
      ? [['receiver.py', 'python3'] as const]
      : []),
  ])(
    '%s: verifies, refuses forged, old and unsigned messages, takes a repeat for one, and outlives an aborted and a slow one',
    async (name, command) => {
      const file = join(ROOT, 'examples', name);
      // Short enough to be read before it is copied.
      expect(readFileSync(file, 'utf8').trim().split('\n').length).toBeLessThanOrEqual(40);
      const port = await freePort();
      const child = spawn(command, [file], {
        env: { PATH: process.env.PATH, PORT: String(port), SECRET: secretTextOf(key) },
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      let printed = '';
      child.stdout.on('data', (chunk: Buffer) => {
        printed += chunk;
      });
      const body = (revision: number, status: string) =>
        JSON.stringify({
          type: 'payment.captured',
          data: { revision, payment: { paymentId: 'pay_1', status } },
        });
      const send = async (text: string, signed = text, atMs = Date.now()) => {
        const headers = signedHeaders([key], 'evt_1', atMs, signed);
        return (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: text }))
          .status;
      };
      try {
        const good = body(3, 'CAPTURED');
        await until('it listens', () =>
          send(good).then(
            () => true,
            () => false,
          ),
        );
        expect(await send(good)).toBe(204);
        expect(await send(body(2, 'AUTHORIZED'))).toBe(204);
        expect(await send(body(9, 'REFUNDED'), good)).toBe(401);
        expect(await send(good, good, Date.now() - 600_000)).toBe(401);
        const address = `http://127.0.0.1:${port}/`;
        expect((await fetch(address, { method: 'POST', body: good })).status).toBe(401);
        const held = connect(port, '127.0.0.1');
        held.write(HELD_BACK);
        const aborted = connect(port, '127.0.0.1');
        aborted.end(HELD_BACK);
        await once(aborted.resume(), 'close');
        expect(await send(body(5, 'REFUNDED'))).toBe(204);
        held.destroy();
        await until('both lines', () => printed.split('\n').length === 3);
        expect(printed).toBe('payment.captured pay_1 CAPTURED\npayment.captured pay_1 REFUNDED\n');
      } finally {
        child.kill();
        await once(child, 'close');
      }
    },
  );
});

const example = JSON.parse(readFileSync(join(ROOT, 'examples/payment.json'), 'utf8'));

describe('payments listen --forward-to', () => {
  let service: StartedInProcess;
  let receiver: WebhookReceiver;
  beforeAll(async () => {
    service = await startInProcess({ env: { WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8' } });
    receiver = await startReceiver();
  });
  afterAll(async () => {
    await service?.[Symbol.asyncDispose]();
    await receiver?.[Symbol.asyncDispose]();
  });

  const own = () => service.token('m_demo', 'payments:read payments:write webhooks:write');

  /** The command, until the test ends it. */
  const listening = async (token: string, ...given: string[]) => {
    const child = spawn(NODE, ['cli/payments.mjs', 'listen', ...given], {
      cwd: ROOT,
      env: { PATH: process.env.PATH, PAYMENTS_URL: service.url, PAYMENTS_TOKEN: token },
    });
    const said = { printed: '', noted: '' };
    child.stdout.on('data', (chunk: Buffer) => {
      said.printed += chunk;
    });
    child.stderr.on('data', (chunk: Buffer) => {
      said.noted += chunk;
    });
    await until('it listens', () => said.noted.includes('forwarding to'));
    return {
      said,
      [Symbol.asyncDispose]: async () => {
        child.kill();
        await once(child, 'close');
      },
    };
  };

  test('forwards the bytes that an endpoint gets, in order, and says what came of each', async () => {
    const token = await own();
    await service.post(
      '/api/v1/webhook-endpoints',
      { url: `${receiver.url}/endpoint` },
      { authorization: `Bearer ${token}` },
    );
    await using listener = await listening(token, '--forward-to', `${receiver.url}/laptop`);
    const { said } = listener;
    const secret = /whsec_[A-Za-z0-9+/=]+/.exec(said.noted)?.[0] ?? '';
    const other = { authorization: `Bearer ${await service.token('m_other')}` };
    await service.post('/api/v1/payments', example, other);
    const { json } = await service.post('/api/v1/payments', example);
    await service.post(`/api/v1/payments/${json.paymentId}/capture`);
    const bodiesAt = (path: string) => receiver.messagesAt(path).map(({ body }) => body);
    await until('two at each', () =>
      ['/hook/laptop', '/hook/endpoint'].every((path) => bodiesAt(path).length === 2),
    );
    expect(bodiesAt('/hook/laptop')).toEqual(bodiesAt('/hook/endpoint'));
    for (const one of receiver.received) if (one.path === '/hook/laptop') verified(secret, one);
    await until('two lines', () => said.printed.split('\n').length === 3);
    expect(said.printed).toMatch(
      /^\d\d:\d\d:\d\d {2}payment\.authorized {2}pay_\w{26} {2}r1 {2}→ 204 {2}\d+ ms\n\d\d:\d\d:\d\d {2}payment\.captured .* r3 {2}→ 204/,
    );
    expect(said.noted).not.toContain('not accepted');
  });

  test('a token that may read alone gets the messages, and no secret to sign them with', async () => {
    const token = await service.token('m_demo', 'payments:read');
    const env = { PAYMENTS_URL: service.url, PAYMENTS_TOKEN: token };
    const forward = ['listen', '--forward-to', receiver.url];
    for (const args of [forward, [...forward, '--print-secret']]) {
      const { code, stdout, stderr } = await runCli(args, env);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toContain('PAYMENTS_TOKEN lacks the scope webhooks:write');
    }
    await service.post('/api/v1/payments', example);
    const messages = await allMessages({ url: service.url, token });
    expect(messages.length).toBeGreaterThan(0);
  });

  test('prints, once for messages that are not accepted, the command that sends them again', async () => {
    await using refusing = await startReceiver();
    refusing.respond = ({ json: { data } }, response) =>
      response.writeHead(data.revision === 1 ? 204 : 500).end();
    const given = ['--forward-to', `${refusing.url}/a?b&c`, '--types'];
    const types = 'payment.authorized,payment.captured,payment.refunded';
    await using first = await listening(await own(), ...given, types);
    const { json } = await service.post('/api/v1/payments', example);
    await service.post(`/api/v1/payments/${json.paymentId}/capture`);
    await service.post(`/api/v1/payments/${json.paymentId}/refund`);
    await until('three lines', () => first.said.printed.split('\n').length === 4);
    const commands = first.said.noted.split('\n').filter((line) => line.includes('not accepted'));
    expect(commands).toHaveLength(1);
    const command = `payments listen --forward-to '${refusing.url}/a?b&c' --from `;
    expect(commands[0]).toContain(`: ${command}`);
    expect(commands[0]).toMatch(new RegExp(` --from \\d+ --types ${types}$`));
    refusing.respond = undefined;
    const from = / --from (\d+)/.exec(commands[0] ?? '')?.[1] ?? '';
    await using again = await listening(await own(), ...given, types, '--from', from);
    await until('two lines', () => again.said.printed.split('\n').length === 3);
    expect(refusing.received.slice(3).map(({ body }) => body)).toEqual(
      refusing.received.slice(1, 3).map(({ body }) => body),
    );
  });
});
