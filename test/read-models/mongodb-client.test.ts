/** A connection that MongoDB's server ends as a call is written is a server out of reach, no fault. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect, test } from '@jest/globals';
import { MongoBulkWriteError } from 'mongodb';
import {
  againAfterBreak,
  isDuplicate,
  mongoFailureOf,
} from '../../shared/read-models/mongodb/client.ts';

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
  expect(mongoFailureOf(error)).toMatchObject({ gone: true });
  expect(await againAfterBreak(async () => 'found')(error)).toBe('found');
});

const resultOf = (writeErrors: object[], code?: number): Error => {
  const described = { message: 'not written', writeErrors, ...(code && { code }) };
  return new MongoBulkWriteError(described as never, {} as never);
};

test.each<[string, boolean, boolean | undefined, Error]>([
  ['a document that is there', true, undefined, resultOf([{ code: 11000 }], 11000)],
  ['a full disk', false, false, resultOf([], 14031)],
  [
    'a full disk behind a document that is there',
    false,
    false,
    resultOf([{ code: 11000 }, { code: 14031 }], 11000),
  ],
  ['a connection that broke', false, true, resultOf([])],
])('gaps §9: a bulk write that meets %s is known as that', (_, duplicate, gone, error) => {
  expect(isDuplicate(error)).toBe(duplicate);
  expect(mongoFailureOf(error)?.gone).toBe(gone);
});

test('an error of our own is neither', () => {
  const error = new Error('not of the server');
  expect(mongoFailureOf(error)).toBeUndefined();
  expect(() => againAfterBreak(async () => 'found')(error)).toThrow(error);
});
