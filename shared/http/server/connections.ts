/** What each connection of a server is busy with. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

const responses = new WeakMap<Duplex, ServerResponse>();
const sockets = new WeakMap<Server, Set<Duplex>>();

/** Keeps book from now on; call it before the server listens. */
export const watchConnections = (server: Server): void => {
  const open = new Set<Duplex>();
  sockets.set(server, open);
  server.on('connection', (socket: Duplex) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    responses.set(request.socket, response);
  });
};

/** The last response begun on a connection, unless it has been sent or can no longer be. */
export const openResponse = (socket: Duplex): ServerResponse | undefined => {
  const response = responses.get(socket);
  return response?.writableFinished || response?.destroyed ? undefined : response;
};

/**
 * Closes every connection without a response to wait for. Node's own `closeIdleConnections` leaves
 * those alone that have never sent a request, and no longer looks at their time-out either.
 */
export const closeUnused = (server: Server): void => {
  for (const socket of sockets.get(server) ?? []) {
    if (openResponse(socket) === undefined) socket.destroy();
  }
};
