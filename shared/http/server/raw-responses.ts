/** The contract's body (gaps §1) for what Node rejects without one, before the framework sees it. */
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { newUlid } from '../../runtime/ids.ts';
import { type ErrorCode, errorBody, helpLink, JSON_TYPE } from '../errors.ts';

const responses = new WeakMap<Duplex, ServerResponse>();
const sockets = new WeakMap<Server, Set<Duplex>>();

/** The last response begun on a connection, unless it is finished or destroyed. */
const openResponse = (socket: Duplex): ServerResponse | undefined => {
  const response = responses.get(socket);
  return response?.writableFinished || response?.destroyed ? undefined : response;
};

/** Node's `closeIdleConnections` skips connections that never sent a request. */
export const closeUnused = (server: Server): void => {
  for (const socket of sockets.get(server) ?? []) {
    if (openResponse(socket) === undefined) socket.destroy();
  }
};

const LINGER_MS = 500;

/**
 * Reads a body that no route reads, for as long as a client takes to send it without a pause. True if more is
 * to come: the next request would begin in its middle, so the connection has to close (RFC 9112, 9.3).
 */
export const isLeftUnread = async (request: IncomingMessage): Promise<boolean> => {
  const { headers, complete } = request;
  const hasBody =
    headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  if (complete !== false || !hasBody) return false;
  const { promise: over, resolve } = Promise.withResolvers<void>();
  // Behind a stall of the process, what has come meanwhile is read first.
  const timer = setTimeout(() => setImmediate(resolve), LINGER_MS);
  request.once('end', resolve).once('close', resolve).resume();
  await over;
  clearTimeout(timer);
  return !request.complete;
};

/** INVALID_REQUEST unless it says another code. */
type Rejection = { status: number; detail: string; code?: ErrorCode };

const BROKEN = { status: 400, detail: 'the request is not well-formed HTTP' };
const REFUSALS: Readonly<Record<string, Rejection>> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    detail: 'the request line and headers must be at most 16 KiB',
  },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: 413, detail: 'the chunk extensions are too large' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, detail: 'the request did not arrive in time' },
};
const NO_TUNNEL: Rejection = {
  status: 405,
  detail: 'CONNECT is not supported',
  code: 'METHOD_NOT_ALLOWED',
};
const NO_EXPECTATION = { status: 417, detail: 'the Expect header must be 100-continue' };

/** Of every response, with its `request-id`. */
export const RESPONSE_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
};

const headersOf = ({ code = 'INVALID_REQUEST' }: Rejection, body: string) => ({
  ...RESPONSE_HEADERS,
  'request-id': newUlid(),
  link: helpLink(code),
  'content-type': JSON_TYPE,
  'content-length': String(Buffer.byteLength(body)),
  connection: 'close',
});

const bodyOf = ({ code = 'INVALID_REQUEST', detail }: Rejection): string =>
  errorBody(code, [detail], new Date().toISOString());

const responseText = (rejection: Rejection): string => {
  const body = bodyOf(rejection);
  const lines = Object.entries({
    ...headersOf(rejection, body),
    date: new Date().toUTCString(),
    ...(rejection === NO_TUNNEL && { allow: 'GET, POST' }),
  }).map(([name, value]) => `${name}: ${value}`);
  const status = `HTTP/1.1 ${rejection.status} ${STATUS_CODES[rejection.status]}`;
  return `${[status, ...lines].join('\r\n')}\r\n\r\n${body}`;
};

const respondAndClose = (socket: Duplex, rejection: Rejection): void => {
  if (!socket.writable) return void socket.destroy();
  socket.end(responseText(rejection));
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
};

/** A complete earlier request gets its own response first: this would be taken for its outcome. */
const rejectInTurn = (socket: Duplex, rejection: Rejection): void => {
  if (socket.destroyed || socket.writableEnded) return;
  const pending = openResponse(socket);
  if (pending?.req.complete) {
    pending.once('close', () => socket.destroy());
  } else if (pending?.headersSent || pending?.socket === null) {
    // A partial or earlier response is on its way: nothing can be added to it.
    socket.destroy();
  } else {
    respondAndClose(socket, rejection);
  }
};

export const respondToClientError = (error: Error & { code?: string }, socket: Duplex): void =>
  rejectInTurn(socket, REFUSALS[error.code ?? ''] ?? BROKEN);

/** Notes connections and responses, and responds in place of Node; call it before the server listens. */
export const watchConnections = (server: Server): void => {
  const open = new Set<Duplex>();
  sockets.set(server, open);
  server.on('connection', (socket: Duplex) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    responses.set(request.socket, response);
    // Node announces the close in the last response, but responds to later requests without a body.
    if (Object(response).maxRequestsOnConnectionReached === true) response.shouldKeepAlive = false;
  });
  server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    const body = bodyOf(NO_EXPECTATION);
    response.writeHead(NO_EXPECTATION.status, headersOf(NO_EXPECTATION, body)).end(body);
  });
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    // Node has removed its own listener: without one a client that disconnects would end the process.
    socket.on('error', () => socket.destroy());
    rejectInTurn(socket, NO_TUNNEL);
  });
};
