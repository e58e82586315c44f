/** A merchant's server: keeps what it is sent, and responds as it is asked to. */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { jest } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { httpServer } from './faulty-server.ts';

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
  /** Each message at a path as it first came: one whose response comes too late is sent again. */
  messagesAt(path?: string): Received[];
  /** Responds to each request from now on; 204 where it is undefined. */
  respond: ((received: Received, response: ServerResponse) => void) | undefined;
  [Symbol.asyncDispose](): Promise<void>;
};

export const startReceiver = async (): Promise<WebhookReceiver> => {
  const receiver: Pick<WebhookReceiver, 'received' | 'respond'> = {
    received: [],
    respond: undefined,
  };
  const server = await httpServer(async (request, response) => {
    const body = await text(request);
    const { headers, url: path = '' } = request;
    const id = String(headers['webhook-id']);
    const received = { atMs: Date.now(), path, id, headers, body, json: JSON.parse(body) };
    receiver.received.push(received);
    if (receiver.respond === undefined) response.writeHead(204).end();
    else receiver.respond(received, response);
  });
  return Object.assign(receiver, {
    url: `${server.url}/hook`,
    messagesAt: (path = '/hook') => {
      const messages = new Map<string, Received>();
      for (const one of receiver.received)
        if (one.path === path && !messages.has(one.id)) messages.set(one.id, one);
      return [...messages.values()];
    },
    [Symbol.asyncDispose]: server.close,
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
