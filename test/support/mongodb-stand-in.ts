/**
 * A stand-in for MongoDB on a real socket: the commands that the drivers of this project send, with
 * the documents in memory.
 *
 * What it is not: durable, a replica set, protected by TLS or passwords, or slow. It has no cursors
 * (a find is one batch), no indexes but that of ids, and only the commands and operators
 * that this service sends. A driver that passes here has been tested for its use of the client, not against a server.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type Databases, responseTo } from './mongodb-stand-in/commands.ts';
import { commandOf, responseFor } from './mongodb-stand-in/wire.ts';

const serve = (socket: Socket, databases: Databases): void => {
  let received = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    while (received.length >= 4 && received.length >= received.readInt32LE(0)) {
      const message = received.subarray(0, received.readInt32LE(0));
      socket.write(responseFor(message, responseTo(commandOf(message), databases)));
      received = received.subarray(message.length);
    }
  });
  socket.on('error', () => socket.destroy());
};

/** Starts it on a port, any free one for 0, and resolves with a value for MONGODB_URL. It keeps no process up. */
export const startMongoStandIn = async (port = 0): Promise<string> => {
  const databases: Databases = new Map();
  const server = createServer({ noDelay: true }, (socket) => serve(socket.unref(), databases));
  await new Promise<void>((listening) => server.listen(port, '127.0.0.1', listening));
  server.unref();
  return `mongodb://127.0.0.1:${(server.address() as AddressInfo).port}/payments`;
};
