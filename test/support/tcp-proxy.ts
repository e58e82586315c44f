/** A proxy before a server, over real sockets: it can be shut, opened again, and held still. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export type TcpProxy = {
  port: number;
  /** Breaks every connection, and lets nobody in: the process is gone. */
  shut(): void;
  open(): void;
  /** Connections stay and new ones are taken, but not a byte goes through: it is frozen. */
  freeze(): void;
  thaw(): void;
  close(): Promise<void>;
};

export const tcpProxy = async (host: string, port: number): Promise<TcpProxy> => {
  const sockets = new Set<Socket>();
  let state: 'open' | 'shut' | 'frozen' = 'open';

  const keep = (socket: Socket, other: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => other.destroy());
    socket.on('close', () => {
      sockets.delete(socket);
      other.destroy();
    });
    socket.on('data', (bytes) => other.write(bytes));
    if (state === 'frozen') socket.pause();
  };
  const server = createServer((inside) => {
    if (state === 'shut') return void inside.resetAndDestroy();
    const outside = connect(port, host);
    keep(inside, outside);
    keep(outside, inside);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));

  const breakAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    shut: () => {
      state = 'shut';
      breakAll();
    },
    open: () => {
      state = 'open';
    },
    freeze: () => {
      state = 'frozen';
      for (const socket of sockets) socket.pause();
    },
    thaw: () => {
      state = 'open';
      for (const socket of sockets) socket.resume();
    },
    close: async () => {
      breakAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
