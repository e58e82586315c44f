/** BatchAppend messages: common ones as bytes, rejections by generated classes (ADR-0007). */
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { LogPosition, Proposed } from './records.ts';
import { bigintAt, messageOf, numberAt, type Part, partOf, textAt, type Writer } from './wire.ts';

const { BatchAppendResp } = streamsPb;
const { MaximumAppendSizeExceeded, UUID, WrongExpectedVersion } = sharedPb;

/** `after`: the revision that the stream ends at, -1 for none. */
export type AppendRequest = { stream: string; after: number; batch: Proposed[] };
/** `last`: the stream's last revision. The server may leave out `position`. */
export type Stored = { last: number; position: LogPosition | undefined };

export type AppendResponse = { id: string; outcome: Stored | Error };

type ServerStatus = NonNullable<ReturnType<InstanceType<typeof BatchAppendResp>['getError']>>;

const REQUEST_BYTES = 160;
const EVENT_BYTES = 160;
const bytesMaxOf = ({ stream, batch }: AppendRequest): number =>
  batch.reduce(
    (sum, { type, data, metadata }) =>
      sum + EVENT_BYTES + 3 * type.length + data.length + metadata.length,
    REQUEST_BYTES + 3 * stream.length,
  );

const writeId = (to: Writer, field: number, id: string): void =>
  to.message(field, () => to.text(2, id));

const writeEntry = (to: Writer, field: number, name: string, value: string): void =>
  to.message(field, () => {
    to.text(2, value);
    to.text(1, name);
  });

const writeProposed = (to: Writer, { id, type, data, metadata }: Proposed): void =>
  to.message(3, () => {
    to.bytes(4, data);
    to.bytes(3, metadata);
    writeEntry(to, 2, 'type', type);
    writeEntry(to, 2, 'content-type', 'application/json');
    writeId(to, 1, id);
  });

/** No deadline: the server's clock would judge it, and one that differs rejects every append. */
export const requestOf = (correlationId: string, request: AppendRequest): Buffer =>
  messageOf(bytesMaxOf(request), (to) => {
    const { stream, after, batch } = request;
    to.number(4, 1); // isFinal
    for (const event of batch.toReversed()) writeProposed(to, event);
    to.message(2, () => {
      if (after >= 0) to.number(2, after);
      else to.message(3, () => undefined);
      to.message(1, () => to.text(3, stream));
    });
    writeId(to, 1, correlationId);
  });

const hexOf = (number: string): string =>
  BigInt.asUintN(64, BigInt(number)).toString(16).padStart(16, '0');

/** The server sends text or two numbers; empty where there is no id. */
export function idAt(bytes: Buffer, part: Part | undefined): string {
  if (part === undefined) return '';
  const text = partOf(bytes, 2, part);
  if (text !== undefined) return textAt(bytes, text);
  const numbers = UUID.deserializeBinary(bytes.subarray(part.from, part.to)).getStructured();
  if (numbers === undefined) return '';
  const hex = hexOf(numbers.getMostSignificantBits()) + hexOf(numbers.getLeastSignificantBits());
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

function storedIn(bytes: Buffer): Stored | undefined {
  const success = partOf(bytes, 3);
  if (success === undefined || partOf(bytes, 2) !== undefined) return undefined;
  const place = partOf(bytes, 3, success);
  return {
    last: numberAt(bytes, partOf(bytes, 1, success)),
    position: place && {
      commit: bigintAt(bytes, partOf(bytes, 1, place)),
      prepare: bigintAt(bytes, partOf(bytes, 2, place)),
    },
  };
}

/** An Error has the client's `type`. Throws RangeError or Error for other bytes. */
export const responseOf = (bytes: Buffer): AppendResponse => ({
  id: idAt(bytes, partOf(bytes, 1)),
  outcome: storedIn(bytes) ?? rejectionIn(bytes),
});

function rejectionIn(bytes: Buffer): Error {
  const error = BatchAppendResp.deserializeBinary(bytes).getError();
  return error === undefined ? new Error('a response that says nothing') : rejectionOf(error);
}

const TYPE_BY_DETAILS: Record<string, string> = {
  WrongExpectedVersion: 'wrong-expected-version',
  StreamDeleted: 'stream-deleted',
  AccessDenied: 'access-denied',
  MaximumAppendSizeExceeded: 'maximum-append-size-exceeded',
  BadRequest: 'invalid-argument',
  Timeout: 'timeout',
};

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
  if (type === 'maximum-append-size-exceeded')
    return tooLarge(MaximumAppendSizeExceeded.deserializeBinary(details).getMaxappendsize());
  return Object.assign(new Error(status.getMessage()), { type });
}

export const tooLarge = (bytesMax: number): Error =>
  Object.assign(new Error(`an append may carry ${bytesMax} bytes, this one is larger`), {
    type: 'maximum-append-size-exceeded',
  });
