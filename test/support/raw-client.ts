import { connect } from 'node:net';

/** A client of a socket on loopback that sends these bytes, and reads whatever comes until it is closed. */
export const rawClient = (port: number, ...parts: string[]) => {
  const socket = connect(port, '127.0.0.1');
  let received = '';
  socket.setEncoding('latin1').on('data', (part: string) => {
    received += part;
  });
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  for (const part of parts) socket.write(part, 'latin1');
  return { socket, received: () => received, closed };
};

export type RawClient = ReturnType<typeof rawClient>;
