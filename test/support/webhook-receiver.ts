/** A merchant's server: keeps what it is sent, and responds as it is asked to. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { jest } from '@jest/globals';
import { Webhook } from 'standardwebhooks';

export type Received = {
  atMs: number;
  path: string;
  id: string;
  headers: IncomingHttpHeaders;
  body: string;
  json: {
    type: string;
    timestamp: string;
    data: {
      eventId: string;
      revision: number;
      payment: { paymentId: string; [field: string]: unknown };
      [field: string]: unknown;
    };
  };
};

export type WebhookReceiver = {
  url: string;
  received: Received[];
  /** Responds to each request from now on; 204 where it is undefined. */
  respond: ((received: Received, response: ServerResponse) => void) | undefined;
  [Symbol.asyncDispose](): Promise<void>;
};

export const startReceiver = async (): Promise<WebhookReceiver> => {
  const receiver: Pick<WebhookReceiver, 'received' | 'respond'> = {
    received: [],
    respond: undefined,
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const { headers, url: path = '' } = request;
      const id = String(headers['webhook-id']);
      const received = { atMs: Date.now(), path, id, headers, body, json: JSON.parse(body) };
      receiver.received.push(received);
      if (receiver.respond === undefined) response.writeHead(204).end();
      else receiver.respond(received, response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return Object.assign(receiver, {
    url: `http://127.0.0.1:${port}/hook`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  });
};

/**
 * The message, checked by the specification's own library as of its arrival, for a long test looks at it
 * minutes later. Throws where a signature does not fit.
 */
export const verified = (secret: string, { atMs, body, headers }: Received): unknown => {
  const now = jest.spyOn(Date, 'now').mockReturnValue(atMs);
  try {
    return new Webhook(secret).verify(body, headers as Record<string, string>);
  } finally {
    now.mockRestore();
  }
};
