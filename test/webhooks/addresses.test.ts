/**
 * A message leaves for public addresses alone (ADR-0222): every way around that is tried against a
 * listener which counts connections.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createWebhookSender, type SenderOptions } from '../../webhooks/delivery/send.ts';
import { addressKinds, urlProblem } from '../../webhooks/endpoints/addresses.ts';
import { hasOpenssl, ownCertificate } from '../support/own-certificate.ts';
import { AWAITED_MS, ENDS_MS_MAX, HANGS_MS } from '../support/time-bounds.ts';
import { within } from '../support/until.ts';

const kindOf = addressKinds([]);
const loopback = addressKinds(['127.0.0.0/8']);

const REFUSED = `
  127.0.0.1 10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1 168.63.129.16
  0.0.0.0 192.0.0.8 192.0.2.1 198.18.0.1 198.51.100.7 203.0.113.9 224.0.0.1 240.0.0.1
  255.255.255.255 192.88.99.1 :: ::1 fe80::1 fe80::1%eth0 fc00::1 fd12::1 ff02::1 64:ff9b::a00:1
  ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:7f00:1 2001::1 2001:db8::1 2002:7f00:1:: 2620:4f:8000::1
  3fff::1 100::1 5f00::1 4000::1 localhost 8.8.8`;
test.each(['', ...REFUSED.trim().split(/\s+/)])('%s is refused', (address) =>
  expect(kindOf(address)).toBe('refused'),
);

const PUBLIC = '8.8.8.8 1.1.1.1 172.32.0.1 192.0.1.1 2606:4700::1111 2a00:1450::1 2400:cb00::1';
test.each(PUBLIC.split(' '))('%s is public', (address) => expect(kindOf(address)).toBe('public'));

test('a network that the operator allows is allowed, also over http', () => {
  expect(loopback('127.3.2.1')).toBe('allowed');
  expect(urlProblem('http://127.0.0.1:9000/hook', loopback)).toBeUndefined();
  expect(urlProblem('http://8.8.8.8/hook', loopback)).toBe('must be a public https address');
});

test.each(['https://localhost:3443/hook', 'https://LOCALHOST/', 'https://shop.localhost./hook'])(
  '%s is no public address, and is one where the operator allows loopback',
  (url) => {
    expect(urlProblem(url, kindOf)).toBe('must be a public https address');
    expect(urlProblem(url, loopback)).toBeUndefined();
  },
);

test('a name that only ends like localhost is public', () => {
  expect(urlProblem('https://notlocalhost/', kindOf)).toBeUndefined();
});

describe('connections', () => {
  let server: Server;
  let connections = 0;
  let port: number;
  beforeAll(async () => {
    server = createServer((_request, response) => response.writeHead(200).end());
    server.on('connection', () => {
      connections += 1;
    });
    server.listen(0, '::');
    await once(server, 'listening');
    ({ port } = server.address() as AddressInfo);
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  beforeEach(() => {
    connections = 0;
  });

  const until = { totalMs: HANGS_MS, signal: new AbortController().signal };
  const send = async (url: string, options: Partial<SenderOptions> = {}) => {
    const sender = createWebhookSender({ kindOf, resolve: async () => ['127.0.0.1'], ...options });
    try {
      return await sender.send(url, {}, '{}', until);
    } finally {
      await sender.close();
    }
  };

  const HOSTS = `
    127.0.0.1 2130706433 0x7f000001 0177.0.0.1 127.1 0 0.0.0.0 127.0.0.1. [::1] [::]
    [::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:0:0:1] [64:ff9b::7f00:1] localhost localhost.
    LOCALHOST １２７.0.0.1 metadata.google.internal good@127.0.0.1`;
  test.each(HOSTS.trim().split(/\s+/))('none is made to %s', async (host) => {
    for (const scheme of ['http', 'https']) {
      const { status, error } = await send(`${scheme}://${host}:${port}/`);
      expect([status, error]).toEqual([null, 'ADDRESS_REFUSED']);
    }
    expect(connections).toBe(0);
  });

  test.each<[string, string[], string]>([
    ['public and private addresses', ['8.8.8.8', '127.0.0.1'], 'ADDRESS_REFUSED'],
    ['a private IPv6 address', ['2606:4700::1111', '::1'], 'ADDRESS_REFUSED'],
    ['a mapped address', ['::ffff:127.0.0.1'], 'ADDRESS_REFUSED'],
    ['no address', [], 'NAME_UNKNOWN'],
  ])('none is made to a name with %s', async (_what, addresses, error) => {
    const sent = await send(`https://shop.example:${port}/`, { resolve: async () => addresses });
    expect(sent).toMatchObject({ status: null, error });
    expect(connections).toBe(0);
  });

  test('a name is looked up for each connection, so that its change helps no attacker', async () => {
    const addressesInTurn = [['127.0.0.1'], ['10.0.0.1']];
    const sender = createWebhookSender({
      kindOf: loopback,
      resolve: async () => addressesInTurn.shift() ?? [],
    });
    const url = `http://shop.example:${port}/`;
    expect(await sender.send(url, {}, '{}', until)).toMatchObject({ status: 200 });
    server.closeAllConnections();
    expect(await sender.send(url, {}, '{}', until)).toMatchObject({ error: 'ADDRESS_REFUSED' });
    expect(connections).toBe(1);
    await sender.close();
  });
});

// Where the machine has no openssl, there is no certificate to try.
(hasOpenssl ? test : test.skip)(
  'an https endpoint is sent something only with a certificate of its name by an authority that is trusted',
  async () => {
    const { cert, key } = ownCertificate('DNS:shop.example');
    let requests = 0;
    const server = createTlsServer({ cert, key }, (_request, response) => {
      requests += 1;
      response.writeHead(204).end();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const sendTo = async (host: string, ca?: string) => {
      const own = { kindOf: loopback, resolve: async () => ['127.0.0.1'] };
      const sender = createWebhookSender({ ...own, ...(ca !== undefined && { ca }) });
      const until = { totalMs: HANGS_MS, signal: new AbortController().signal };
      const { status, error } = await sender.send(`https://${host}:${port}/`, {}, '{}', until);
      await sender.close();
      return status ?? error;
    };
    try {
      expect(await sendTo('shop.example')).toBe('DEPTH_ZERO_SELF_SIGNED_CERT');
      expect(await sendTo('other.example', cert)).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
      expect(requests).toBe(0);
      expect(await sendTo('shop.example', cert)).toBe(204);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  },
);

describe('a receiver that misbehaves', () => {
  const responseOf = async (
    respond: (response: import('node:http').ServerResponse, times: number) => void,
    totalMs = HANGS_MS,
  ) => {
    let times = 0;
    const server = createServer((request, response) => {
      request.resume();
      times += 1;
      respond(response, times);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const sender = createWebhookSender({ kindOf: loopback });
    const options = { totalMs, signal: new AbortController().signal };
    try {
      const send = () => sender.send(`http://127.0.0.1:${port}/`, {}, '{}', options);
      return { ...(await within(ENDS_MS_MAX, send)), times };
    } finally {
      await sender.close();
      server.closeAllConnections();
      server.close();
    }
  };

  test('a redirect is not followed', async () => {
    const location = 'http://127.0.0.1:1/inside';
    expect(
      await responseOf((response) => response.writeHead(302, { location }).end()),
    ).toMatchObject({
      status: 302,
      times: 1,
    });
  });

  test('one that is silent ends in its time', async () => {
    const sent = await responseOf(() => undefined, 300);
    expect(sent).toMatchObject({ status: null, error: 'TIMEOUT' });
  });

  test('a body without an end, or that comes a byte at a time, changes nothing of a 200', async () => {
    const endless = await responseOf((response) => {
      response.writeHead(200);
      const write = (): void => {
        while (response.write('x'.repeat(65_536)));
        response.once('drain', write);
      };
      write();
    });
    expect(endless).toMatchObject({ status: 200, error: null });
    const dripping = await responseOf((response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write('x'), 20);
      response.on('close', () => clearInterval(timer));
    }, AWAITED_MS);
    expect(dripping.status).toBe(200);
  });

  test('a connection that is reset is a failure', async () => {
    const sent = await responseOf((response) => response.destroy());
    expect(sent).toMatchObject({ status: null, error: 'UND_ERR_SOCKET' });
  });

  test.each([429, 503])('the Retry-After of a %i is taken', async (status) => {
    const sent = await responseOf((response) =>
      response.writeHead(status, { 'retry-after': '120' }).end(),
    );
    expect(sent).toMatchObject({ status, retryAfterMs: 120_000 });
  });
});
