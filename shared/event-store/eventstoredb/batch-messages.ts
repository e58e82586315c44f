/** The messages of a BatchAppend stream, on the client's generated stubs: 64-bit numbers are text. */
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { LogPosition, Proposed } from './records.ts';

const { BatchAppendReq } = streamsPb;
const { Empty, MaximumAppendSizeExceeded, StreamIdentifier, UUID, WrongExpectedVersion } = sharedPb;

/** One append: events for a stream that ends at revision `after`, or -1 where there is none yet. */
export type AppendRequest = { stream: string; after: number; batch: Proposed[] };
/** Stored: the stream's last revision, and the place of the last event where the server names it. */
export type Stored = { last: number; position: LogPosition | undefined };

type Request = InstanceType<typeof BatchAppendReq>;
type Response = InstanceType<typeof streamsPb.BatchAppendResp>;
type ServerStatus = NonNullable<ReturnType<Response['getError']>>;
type Id = InstanceType<typeof UUID>;

const utf8 = new TextEncoder();

const uuidOf = (text: string): Id => {
  const id = new UUID();
  id.setString(text);
  return id;
};

function proposedOf({ id, type, data, metadata }: Proposed) {
  const message = new BatchAppendReq.ProposedMessage();
  message.setId(uuidOf(id));
  message.getMetadataMap().set('type', type).set('content-type', 'application/json');
  message.setData(data);
  message.setCustomMetadata(metadata);
  return message;
}

/**
 * The whole append in one message. It names no deadline: that would be a time of the server's clock,
 * and a clock that differs would have every append rejected.
 */
export function requestOf(correlationId: string, { stream, after, batch }: AppendRequest): Request {
  const identifier = new StreamIdentifier();
  identifier.setStreamName(utf8.encode(stream));
  const options = new BatchAppendReq.Options();
  options.setStreamIdentifier(identifier);
  // seeded bug: eventstoredb-batch-expected
  if (after >= 0) options.setStreamPosition(String(after));
  else options.setNoStream(new Empty());
  const request = new BatchAppendReq();
  request.setCorrelationId(uuidOf(correlationId));
  request.setOptions(options);
  request.setProposedMessagesList(batch.map(proposedOf));
  request.setIsFinal(true);
  return request;
}

const hexOf = (number: string): string =>
  BigInt.asUintN(64, BigInt(number)).toString(16).padStart(16, '0');

/** An id as the server sends it, as text or as two numbers; empty where there is none. */
export function textOfId(id: Id | undefined): string {
  const numbers = id?.getStructured();
  if (numbers === undefined) return id?.getString() ?? '';
  const hex = hexOf(numbers.getMostSignificantBits()) + hexOf(numbers.getLeastSignificantBits());
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** The correlation id of a response. */
export const correlationOf = (response: Response): string => textOfId(response.getCorrelationId());

/** What came of an append. Throws an error with the `type` that the client gives the same rejection. */
export function storedOf(response: Response): Stored {
  const error = response.getError();
  if (error !== undefined) throw rejectionOf(error);
  const success = response.getSuccess();
  if (success === undefined) throw new Error('an answer that says nothing');
  const last = Number(success.getCurrentRevision());
  const place = success.getPosition();
  if (place === undefined) return { last, position: undefined };
  const [commit, prepare] = [place.getCommitPosition(), place.getPreparePosition()];
  return { last, position: { commit: BigInt(commit), prepare: BigInt(prepare) } };
}

const TYPE_BY_DETAILS: Record<string, string> = {
  WrongExpectedVersion: 'wrong-expected-version',
  StreamDeleted: 'stream-deleted',
  AccessDenied: 'access-denied',
  MaximumAppendSizeExceeded: 'maximum-append-size-exceeded',
  BadRequest: 'invalid-argument',
  Timeout: 'timeout',
};

/** The error of the driver for a status of the server: what it does not list stays without a type. */
function rejectionOf(status: ServerStatus): Error {
  const name = status.getDetails()?.getTypeName().replace('event_store.client.', '') ?? '';
  const type = TYPE_BY_DETAILS[name];
  const details = status.getDetails()?.getValue_asU8() ?? new Uint8Array();
  if (type === 'wrong-expected-version') {
    const wrong = WrongExpectedVersion.deserializeBinary(details);
    const actualVersion = wrong.hasCurrentStreamRevision()
      ? BigInt(wrong.getCurrentStreamRevision())
      : 'no_stream';
    return Object.assign(new Error('another revision'), { type, actualVersion });
  }
  if (type === 'maximum-append-size-exceeded') {
    return tooLarge(MaximumAppendSizeExceeded.deserializeBinary(details).getMaxappendsize());
  }
  return Object.assign(new Error(status.getMessage()), { type });
}

/** The error for an append of more bytes than one may carry. */
export const tooLarge = (bytesMax: number): Error =>
  Object.assign(new Error(`an append may carry ${bytesMax} bytes, this one is larger`), {
    type: 'maximum-append-size-exceeded',
  });
