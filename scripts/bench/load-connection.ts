/**
 * A kept-alive connection that sends one prepared request at a time and reads no more of the response
 * than its status and length: a load that costs more than the server it drives measures itself.
 */
import { once } from 'node:events';
import { connect } from 'node:net';

/** `status` is 0 where the connection broke. `body` is only read when it is called. */
export type Response = { status: number; body: () => string };

/** An open connection. */
export type Connection = {
  /** Sends a request and calls `done` once. Not before the response to the last one is there. */
  send(request: Buffer, done: (response: Response) => void): void;
  isClosed(): boolean;
  close(): void;
};

/** What requests of one round have in common. */
type Common = { url: string; method: string; headers: Record<string, string>; body?: string };

/** The bytes of a request. */
export const requestOf = ({ url, method, headers, body }: Common, path: string): Buffer => {
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
  const fields = Object.entries({ host: new URL(url).host, ...headers, ...length });
  const head = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${head}\r\n${body ?? ''}`);
};

const HEAD_END = '\r\n\r\n';
const STATUS_AT = 'HTTP/1.1 '.length;

/** The response in `bytes` once all of it is there. Throws for one that does not say its length. */
export const responseIn = (bytes: Buffer): Response | undefined => {
  const headEnd = bytes.indexOf(HEAD_END);
  if (headEnd === -1) return undefined;
  const head = bytes.toString('latin1', 0, headEnd);
  const [, length] = /\r\ncontent-length: ?(\d+)/i.exec(head) ?? [];
  if (length === undefined) throw new Error(`a response without its length: ${head}`);
  const bodyAt = headEnd + HEAD_END.length;
  if (bytes.length < bodyAt + Number(length)) return undefined;
  const status = Number(head.slice(STATUS_AT, STATUS_AT + 3));
  return { status, body: () => bytes.toString('utf8', bodyAt) };
};

/** Opens a connection. Throws what connecting throws. */
export const connectTo = async ({ hostname, port }: URL): Promise<Connection> => {
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.setNoDelay(true);
  let waiting: ((response: Response) => void) | undefined;
  let received: Buffer | undefined;
  const end = (response: Response) => {
    const done = waiting;
    waiting = undefined;
    received = undefined;
    done?.(response);
  };
  socket.on('data', (chunk: Buffer) => {
    received = received === undefined ? chunk : Buffer.concat([received, chunk]);
    const response = responseIn(received);
    if (response !== undefined) end(response);
  });
  // 'close' follows.
  socket.on('error', () => undefined);
  socket.on('close', () => end({ status: 0, body: () => '' }));
  return {
    send(request, done) {
      waiting = done;
      socket.write(request);
    },
    isClosed: () => socket.destroyed,
    close: () => void socket.destroy(),
  };
};
