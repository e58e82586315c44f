/** BatchAppend messages: common ones as bytes, rejections by generated classes (ADR-0007). */
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import {
  appendedMessage,
  appendMessage,
  bigintOf,
  idOf,
  type Sent64,
  type SentId,
  type SentPosition,
  serverPosition,
} from './protocol.ts';
import type { LogPosition, Proposed } from './records.ts';

const { BatchAppendResp } = streamsPb;
const { MaximumAppendSizeExceeded, WrongExpectedVersion } = sharedPb;

/** `after`: the revision that the stream ends at, -1 for none. */
export type AppendRequest = { stream: string; after: number; batch: Proposed[] };
/** `last`: the stream's last revision. The server may leave out `position`. */
export type Stored = { last: number; position: LogPosition | undefined };

export type AppendResponse = { id: string; outcome: Stored | Error };

/** No deadline: the server's clock would judge it, and one that differs rejects every append. */
export const appendRequestOf = (
  correlationId: string,
  { stream, after, batch }: AppendRequest,
): Buffer => {
  const expected = after < 0 ? { none: {} } : { revision: after };
  const events = batch.map(({ id, type, data, metadata }) => {
    const headers = { 'content-type': 'application/json', type };
    return { id: { text: id }, headers, metadata, data };
  });
  const options = { stream: { name: stream }, ...expected };
  const message = { id: { text: correlationId }, options, batch: events, isFinal: true };
  // A Buffer on Node, which the client's gRPC takes alone.
  return appendMessage.encode(message).finish() as Buffer;
};

type Appended = {
  id: SentId;
  success: { revision: Sent64; position: SentPosition | null } | null;
};

/** An Error has the client's `type`. Throws RangeError or Error for other bytes. */
export const appendResponseOf = (bytes: Buffer): AppendResponse => {
  const { id, success } = appendedMessage.decode(bytes) as unknown as Appended;
  const position = success?.position ? serverPosition(success.position) : undefined;
  const outcome = success
    ? { last: Number(bigintOf(success.revision)), position }
    : rejectionIn(bytes);
  return { id: idOf(id), outcome };
};

const TYPE_BY_DETAILS: Record<string, string> = {
  WrongExpectedVersion: 'wrong-expected-version',
  StreamDeleted: 'stream-deleted',
  AccessDenied: 'access-denied',
  MaximumAppendSizeExceeded: 'maximum-append-size-exceeded',
  BadRequest: 'invalid-argument',
};

function rejectionIn(bytes: Buffer): Error {
  const status = BatchAppendResp.deserializeBinary(bytes).getError();
  const sent = status?.getDetails();
  const type = TYPE_BY_DETAILS[sent?.getTypeName().replace('event_store.client.', '') ?? ''];
  const details = sent?.getValue_asU8() ?? new Uint8Array();
  if (type === 'wrong-expected-version') {
    const wrong = WrongExpectedVersion.deserializeBinary(details);
    const actualVersion = wrong.hasCurrentStreamRevision()
      ? BigInt(wrong.getCurrentStreamRevision())
      : 'no_stream';
    return Object.assign(new Error('another revision'), { type, actualVersion });
  }
  if (type === 'maximum-append-size-exceeded')
    return tooLarge(MaximumAppendSizeExceeded.deserializeBinary(details).getMaxappendsize());
  return Object.assign(new Error(status?.getMessage() ?? 'a response that says nothing'), { type });
}

export const tooLarge = (bytesMax: number): Error =>
  Object.assign(new Error(`an append may carry ${bytesMax} bytes, this one is larger`), {
    type: 'maximum-append-size-exceeded',
  });
