/**
 * ADR-0007: what the EventStoreDB driver writes and reads of the server's messages by itself is what the
 * client's generated classes write and read, byte for byte.
 */
import { once } from 'node:events';
import { createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { describe, expect, test } from '@jest/globals';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import {
  type AppendRequest,
  requestOf,
  responseOf,
} from '../../shared/event-store/eventstoredb/batch-messages.ts';
import { openEventStoreDb } from '../../shared/event-store/eventstoredb/event-store.ts';
import { sentEventOf } from '../../shared/event-store/eventstoredb/read-messages.ts';
import { messageOf } from '../support/eventstoredb-stand-in/messages.ts';
import { created, newEvent } from '../support/payment-events.ts';

const { BatchAppendReq, BatchAppendResp } = streamsPb;
const { AllStreamPosition, Empty, StreamIdentifier, UUID } = sharedPb;

const logger = { debug: () => undefined, warn: () => undefined };
const ID = '0190b3c1-7a5e-7d31-8f6b-0123456789ab';
const OTHER_ID = '0190b3c1-7a5e-7d31-8f6b-ba9876543210';

const uuid = (text: string) => new UUID().setString(text);

const generated = ({ stream, after, batch }: AppendRequest): Uint8Array => {
  const options = new BatchAppendReq.Options();
  options.setStreamIdentifier(new StreamIdentifier().setStreamName(Buffer.from(stream)));
  if (after < 0) options.setNoStream(new Empty());
  else options.setStreamPosition(String(after));
  const request = new BatchAppendReq().setCorrelationId(uuid(ID)).setOptions(options);
  const messages = batch.map(({ id, type, data, metadata }) => {
    const message = new BatchAppendReq.ProposedMessage().setId(uuid(id));
    message.getMetadataMap().set('type', type).set('content-type', 'application/json');
    return message.setData(data).setCustomMetadata(metadata);
  });
  return request.setProposedMessagesList(messages).setIsFinal(true).serializeBinary();
};

const event = (dataBytes: number, metadataBytes = 300) => ({
  id: OTHER_ID,
  type: 'PaymentCreated',
  data: Buffer.alloc(dataBytes, 'd'),
  metadata: Buffer.alloc(metadataBytes, 'm'),
});

// A length takes another byte from 128, 16,384 and 2,097,152 on, and so does a revision.
test.each([
  ['p', 1, -1],
  ['p', 127, 0],
  ['payment-1', 128, 1],
  ['payment-1', 16_383, 127],
  ['merchant-reference-ä€😀'.repeat(40), 16_384, 128],
  ['€'.repeat(2_000), 1_048_576, 2 ** 32],
  ['payment-1', 2_097_152, Number.MAX_SAFE_INTEGER],
])('an append is written as the generated classes write it (%#)', (stream, bytes, after) => {
  for (const batch of [[event(bytes)], [event(1, bytes), event(2), event(3)]]) {
    const request = { stream, after, batch };
    expect(requestOf(ID, request).equals(generated(request))).toBe(true);
  }
});

const success = (revision: string, place?: [commit: string, prepare: string]) => {
  const stored = new BatchAppendResp.Success().setCurrentRevision(revision);
  if (place === undefined) return stored.setNoPosition(new Empty());
  const [commit, prepare] = place;
  return stored.setPosition(
    new AllStreamPosition().setCommitPosition(commit).setPreparePosition(prepare),
  );
};

describe('a response is read as the generated classes write it', () => {
  test.each([
    ['0', '0', '0'],
    ['1', '127', '128'],
    ['9007199254740991', '562949953421311', '562949953421312'],
    ['3', '9223372036854775807', '18446744073709551615'],
  ])('stored at revision %s, commit %s, prepare %s', (revision, commit, prepare) => {
    const response = new BatchAppendResp()
      .setCorrelationId(uuid(ID))
      .setStreamIdentifier(new StreamIdentifier().setStreamName(Buffer.from('payment-1')))
      .setSuccess(success(revision, [commit, prepare]));
    expect(responseOf(Buffer.from(response.serializeBinary()))).toEqual({
      id: ID,
      outcome: {
        last: Number(revision),
        position: { commit: BigInt(commit), prepare: BigInt(prepare) },
      },
    });
  });

  test('stored at a place that the server does not name', () => {
    const response = new BatchAppendResp().setCorrelationId(uuid(ID)).setSuccess(success('2'));
    const read = responseOf(Buffer.from(response.serializeBinary()));
    expect(read).toEqual({ id: ID, outcome: { last: 2, position: undefined } });
  });

  test('which says nothing, or of which bytes are missing: nothing is taken for stored', () => {
    const empty = new BatchAppendResp().setCorrelationId(uuid(ID));
    expect(responseOf(Buffer.from(empty.serializeBinary())).outcome).toBeInstanceOf(Error);
    const whole = Buffer.from(empty.setSuccess(success('2', ['7', '7'])).serializeBinary());
    for (let length = 40; length < whole.length; length += 1) {
      const cut = (): unknown => responseOf(whole.subarray(0, length)).outcome;
      if (length === 40) expect(cut()).toBeInstanceOf(Error);
      else expect(cut).toThrow(RangeError);
    }
  });
});

describe('an event is read as the generated classes write it', () => {
  const stored = {
    ...{ stream: 'merchant-reference-ä€😀', id: ID, revision: 3, position: 281_474_976_710_656n },
    ...{ type: 'PaymentCreated', contentType: 'application/json', created: 1_700_000_000_000 },
    data: Buffer.from('{"a":"€"}').toString('base64'),
    metadata: Buffer.from('{"b":2}').toString('base64'),
  };
  const read = (message: InstanceType<typeof streamsPb.ReadResp>) =>
    sentEventOf(Buffer.from(message.serializeBinary()))?.read();

  test('with its id as a text or as two numbers', () => {
    const message = messageOf(stored);
    const asText = read(message);
    expect(asText).toMatchObject({ streamId: stored.stream, id: ID, data: { a: '€' } });
    const numbers = new UUID.Structured()
      .setMostSignificantBits(String(BigInt.asIntN(64, 0x0190b3c17a5e7d31n)))
      .setLeastSignificantBits(String(BigInt.asIntN(64, 0x8f6b0123456789abn)));
    message.getEvent()?.getEvent()?.setId(new UUID().setStructured(numbers));
    expect(read(message)).toEqual(asText);
  });

  test('no event', () => {
    const caughtUp = new streamsPb.ReadResp().setCaughtUp(new streamsPb.ReadResp.CaughtUp());
    expect(read(caughtUp)).toBeUndefined();
  });
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
