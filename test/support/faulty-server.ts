/** Servers that break HTTP in one way each, on real loopback sockets. */
import { spawn } from 'node:child_process';
import { createServer, type RequestListener } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { freePort } from './free-port.ts';

export type FaultyServer = { url: string; requests: string[]; close(): Promise<void> };

/** An HTTP server with one handler for every request. */
export const httpServer = async (handler: RequestListener): Promise<FaultyServer> => {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    handler(request, response);
  });
  return listening(server, requests, () => server.closeAllConnections());
};

/** A TCP server that does with each connection, once it has sent something, what `handler` says. */
export const rawServer = async (handler: (socket: net.Socket) => void): Promise<FaultyServer> => {
  const requests: string[] = [];
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('data', (data) => {
      requests.push(data.toString('latin1').split(' HTTP/')[0] ?? '');
      handler(socket);
    });
  });
  return listening(server, requests, () => {
    for (const socket of sockets) socket.destroy();
  });
};

const listening = async (
  server: net.Server,
  requests: string[],
  closeConnections: () => void,
): Promise<FaultyServer> => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      closeConnections();
    });
  return { url: `http://127.0.0.1:${port}`, requests, close };
};

/** The address of a port where nothing listens. */
export const refusedUrl = async (): Promise<string> => `http://127.0.0.1:${await freePort()}`;

const SLEEPER = `
  const server = require('node:net').createServer();
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    require('node:fs').writeSync(1, String(server.address().port));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });
`;

const connects = (port: number, sockets: net.Socket[]): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.setTimeout(200, () => resolve(false));
    socket.once('connect', () => resolve(true));
  });

const FILLERS_MAX = 20;

/**
 * A port that neither takes a connection nor refuses it: a process that sleeps, with a full queue.
 * Resolves with why not, where this system gives no such port.
 */
export const blackHole = async (): Promise<
  { url: string; close(): void } | { skip: string; close(): void }
> => {
  const child = spawn(process.execPath, ['-e', SLEEPER], { stdio: ['ignore', 'pipe', 'ignore'] });
  const sockets: net.Socket[] = [];
  const close = () => {
    for (const socket of sockets) socket.destroy();
    child.kill('SIGKILL');
  };
  const port = await new Promise<number>((resolve) => {
    child.stdout.once('data', (data) => resolve(Number(data)));
  });
  for (let filler = 0; filler < FILLERS_MAX; filler += 1) {
    if (!(await connects(port, sockets))) return { url: `http://127.0.0.1:${port}`, close };
  }
  return { skip: 'this system lets a full queue of connections grow', close };
};
