/** A proxy before a server, over real sockets: it can be shut, opened again, and held still. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export type TcpProxy = Awaited<ReturnType<typeof tcpProxy>>;

export const tcpProxy = async (host: string, port: number) => {
  const sockets = new Set<Socket>();
  let state: 'open' | 'shut' | 'frozen' = 'open';
  let beforeRequest: { text: string; step: () => void } | undefined;
  let beforeResponse: { text: string; step: () => unknown } | undefined;
  let takesBytes = Number.POSITIVE_INFINITY;
  let counted = { text: '', requests: 0 };

  const keep = (socket: Socket, other: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => other.destroy());
    socket.on('close', () => {
      sockets.delete(socket);
      other.destroy();
    });
    if (state === 'frozen') socket.pause();
  };
  const join = (inside: Socket, outside: Socket): void => {
    let held: (() => unknown) | undefined;
    let sent: Promise<unknown> = Promise.resolve();
    let request = { bytes: 0, isCounted: false };
    inside.on('data', (bytes) => {
      request.bytes += bytes.length;
      request.isCounted ||= counted.text !== '' && bytes.includes(counted.text);
      if (request.bytes > takesBytes) return void inside.resetAndDestroy();
      if (beforeRequest !== undefined && bytes.includes(beforeRequest.text)) {
        const { step } = beforeRequest;
        beforeRequest = undefined;
        step();
      }
      if (beforeResponse !== undefined && bytes.includes(beforeResponse.text)) {
        held = beforeResponse.step;
        beforeResponse = undefined;
      }
      outside.write(bytes);
    });
    outside.on('data', (bytes) => {
      if (request.isCounted) counted.requests += 1;
      request = { bytes: 0, isCounted: false };
      sent = sent.then(held).then(() => inside.write(bytes));
      held = undefined;
    });
  };
  const server = createServer((inside) => {
    if (state === 'shut') return void inside.resetAndDestroy();
    const outside = connect(port, host);
    keep(inside, outside);
    keep(outside, inside);
    join(inside, outside);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));

  const breakAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    /** Breaks every connection, and lets none in: the process is gone. */
    shut: () => {
      state = 'shut';
      breakAll();
    },
    open: () => {
      state = 'open';
    },
    /** Connections stay and new ones are taken, but not a byte goes through: it is frozen. */
    freeze: () => {
      state = 'frozen';
      for (const socket of sockets) socket.pause();
    },
    thaw: () => {
      state = 'open';
      for (const socket of sockets) socket.resume();
    },
    /** Runs a step before the next request that holds this text goes to the server. */
    beforeRequest: (text: string, step: () => void) => {
      beforeRequest = { text, step };
    },
    /** Runs a step between the next request that holds this text and its response, which waits for it. */
    beforeResponseTo: (text: string, step: () => unknown) => {
      beforeResponse = { text, step };
    },
    /** From now on each connection breaks under a request of more bytes than that. */
    takeAtMost: (bytes: number) => {
      takesBytes = bytes;
    },
    /** How many requests with this text have got a response since the last call. */
    taken: (text: string): number => {
      const { requests } = counted;
      counted = { text, requests: 0 };
      return requests;
    },
    close: async () => {
      breakAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
