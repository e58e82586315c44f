/**
 * ADR-0007: what the definition of the server's messages that the EventStoreDB driver brings along says of
 * odd ones. The contract suite has the others: the stand-in reads and writes them by the generated classes.
 */
import { once } from 'node:events';
import { createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { expect, test } from '@jest/globals';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import { appendResponseOf } from '../../shared/event-store/eventstoredb/batch-messages.ts';
import { openEventStoreDb } from '../../shared/event-store/eventstoredb/event-store.ts';
import { readResponseOf } from '../../shared/event-store/eventstoredb/read-messages.ts';
import { messageOf } from '../support/eventstoredb-stand-in/messages.ts';
import { created, newEvent } from '../support/payment-events.ts';

const { BatchAppendResp } = streamsPb;
const { AllStreamPosition, UUID } = sharedPb;

const logger = { debug: () => undefined, warn: () => undefined };
const ID = '0190b3c1-7a5e-7d31-8f6b-0123456789ab';

const uuid = (text: string) => new UUID().setString(text);

const stored = (): Buffer => {
  const position = new AllStreamPosition().setCommitPosition('7').setPreparePosition('7');
  const success = new BatchAppendResp.Success().setCurrentRevision('9007199254740991');
  const response = new BatchAppendResp().setCorrelationId(uuid(ID));
  return Buffer.from(response.setSuccess(success.setPosition(position)).serializeBinary());
};

test('a response which says nothing, or of which bytes are missing: nothing is taken for stored', () => {
  const whole = stored();
  expect(appendResponseOf(whole).outcome).toMatchObject({ last: Number.MAX_SAFE_INTEGER });
  const empty = new BatchAppendResp().setCorrelationId(uuid(ID)).serializeBinary();
  expect(appendResponseOf(Buffer.from(empty)).outcome).toBeInstanceOf(Error);
  for (let length = empty.length + 1; length < whole.length; length += 1)
    expect(() => appendResponseOf(whole.subarray(0, length))).toThrow(RangeError);
});

test('an event is read as the generated classes write it, its id as a text or as two numbers', () => {
  const message = messageOf({
    ...{ stream: 'merchant-reference-ä€😀', id: ID, revision: 3, position: 281_474_976_710_656n },
    ...{ type: 'PaymentCreated', contentType: 'application/json', created: 1_700_000_000_000 },
    data: Buffer.from('{"a":"€"}').toString('base64'),
    metadata: Buffer.from('{"b":2}').toString('base64'),
  });
  const read = () => {
    const response = readResponseOf(Buffer.from(message.serializeBinary()));
    return 'streamId' in response && response;
  };
  const position = { commit: 281_474_976_710_656n, prepare: 281_474_976_710_656n };
  const expected = {
    ...{ streamId: 'merchant-reference-ä€😀', id: ID, revision: 3n, type: 'PaymentCreated' },
    ...{ data: { a: '€' }, metadata: { b: 2 }, position },
  };
  expect(read()).toEqual(expected);
  const numbers = new UUID.Structured()
    .setMostSignificantBits(String(BigInt.asIntN(64, 0x0190b3c17a5e7d31n)))
    .setLeastSignificantBits(String(BigInt.asIntN(64, 0x8f6b0123456789abn)));
  message.getEvent()?.getEvent()?.setId(new UUID().setStructured(numbers));
  expect(read()).toEqual(expected);
});

test('no call offers compression: KurrentDB from 25.1 on would gzip each response', async () => {
  const offered: unknown[] = [];
  const server = createServer().on('stream', (stream: ServerHttp2Stream, headers) => {
    offered.push(headers['grpc-accept-encoding']);
    stream.respond({ ':status': 200, 'grpc-status': 14 }, { endStream: true });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const store = await openEventStoreDb({ url: `esdb://127.0.0.1:${port}?tls=false`, logger });
  await expect(store.readStream('payment-1')).rejects.toThrow(StoreUnavailable);
  await expect(store.append('payment-1', 'none', [newEvent(created())])).rejects.toThrow();
  await store.close();
  server.close();
  expect(new Set(offered)).toEqual(new Set(['identity']));
});
