/** A connection that MongoDB's server ends as a call is written is a server out of reach, no fault. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect, test } from '@jest/globals';
import { againAfterBreak, failureOf } from '../../../shared/read-models/mongodb/client.ts';

/** Node's own error for a write to a connection that the other end has left. */
const brokenWrite = async (): Promise<Error> => {
  const server = createServer((socket) => socket.end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').resume();
  await once(socket, 'end');
  const failed = once(socket, 'error');
  socket.write('a call');
  const [error] = await failed;
  server.close();
  return error;
};

test('gaps §9: the call is made once more, and then the read models are out of reach', async () => {
  const error = await brokenWrite();
  expect(error).toMatchObject({ code: 'EPIPE' });
  expect(failureOf(error)).toMatchObject({ gone: true });
  expect(await againAfterBreak(async () => 'found')(error)).toBe('found');
});

test('an error of our own is neither', () => {
  const error = new Error('not of the server');
  expect(failureOf(error)).toBeUndefined();
  expect(() => againAfterBreak(async () => 'found')(error)).toThrow(error);
});
