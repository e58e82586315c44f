/**
 * The call BatchAppend: many appends on one stream, each with a correlation id and an answer of its
 * own. What goes wrong with one of them leaves its neighbours alone, but for what ends the stream.
 */
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import statusPb from '@eventstore/db-client/generated/status_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { ServerDuplexStream } from '@grpc/grpc-js';
import anyPb from 'google-protobuf/google/protobuf/any_pb.js';
import { type AppendFault, type Faults, SLOW_MS } from './faults.ts';
import type { Appended, Log, Proposed } from './log.ts';
import { identifierOf, nameOf, proposedOf } from './messages.ts';
import type { Stored } from './stored.ts';

const { BatchAppendResp } = streamsPb;
const {
  AccessDenied,
  AllStreamPosition,
  Empty,
  MaximumAppendSizeExceeded,
  StreamDeleted,
  UUID,
  WrongExpectedVersion,
} = sharedPb;
type Request = InstanceType<typeof streamsPb.BatchAppendReq>;
type Response = InstanceType<typeof BatchAppendResp>;
type Status = InstanceType<typeof statusPb.Status>;
type BatchCall = ServerDuplexStream<Request, Response>;

const ALREADY_EXISTS = 6;
const PERMISSION_DENIED = 7;
const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;

function statusOf(message: string, code: number, name: string, details: Uint8Array): Status {
  const any = new anyPb.Any();
  any.pack(details, name);
  return new statusPb.Status().setCode(code).setMessage(message).setDetails(any);
}

/** A server that starts, or has too much to do: no code, and details without anything in them. */
const notReady = (): Status =>
  statusOf('Server Is Not Ready', 0, 'google.protobuf.Empty', new Empty().serializeBinary());

function wrongRevision(endsAt: number, expected: number): Status {
  const wrong = new WrongExpectedVersion();
  if (endsAt < 0) wrong.setCurrentNoStream(new Empty());
  else wrong.setCurrentStreamRevision(String(endsAt));
  if (expected < 0) wrong.setExpectedNoStream(new Empty());
  else wrong.setExpectedStreamPosition(String(expected));
  const [name, bytes] = ['event_store.client.WrongExpectedVersion', wrong.serializeBinary()];
  return statusOf('WrongExpectedVersion', ALREADY_EXISTS, name, bytes);
}

function tooLarge(bytesMax: number): Status {
  const exceeded = new MaximumAppendSizeExceeded();
  exceeded.setMaxappendsize(bytesMax);
  const [name, bytes] = ['MaximumAppendSizeExceeded', exceeded.serializeBinary()];
  return statusOf(name, INVALID_ARGUMENT, `event_store.client.${name}`, bytes);
}

const accessDenied = (): Status =>
  statusOf(
    'AccessDenied',
    PERMISSION_DENIED,
    'event_store.client.AccessDenied',
    new AccessDenied().serializeBinary(),
  );

function successOf(stored: Stored[]): InstanceType<typeof BatchAppendResp.Success> {
  const last = stored.at(-1) as Stored;
  const at = String(last.position);
  const position = new AllStreamPosition().setCommitPosition(at).setPreparePosition(at);
  return new BatchAppendResp.Success()
    .setCurrentRevision(String(last.revision))
    .setPosition(position);
}

function streamDeleted(stream: string): Status {
  const deleted = new StreamDeleted();
  deleted.setStreamIdentifier(identifierOf(stream));
  const [name, bytes] = ['StreamDeleted', deleted.serializeBinary()];
  return statusOf(name, NOT_FOUND, `event_store.client.${name}`, bytes);
}

/** The server gives a correlation id back as it came, but for its own timeouts. */
function responseTo(request: Request, outcome: Appended | Status, expected: number): Response {
  const response = new BatchAppendResp();
  response.setCorrelationId(request.getCorrelationId());
  response.setStreamIdentifier(request.getOptions()?.getStreamIdentifier());
  if (outcome instanceof statusPb.Status) response.setError(outcome);
  else if ('deleted' in outcome) response.setError(streamDeleted(outcome.deleted));
  else if ('stored' in outcome) response.setSuccess(successOf(outcome.stored));
  else response.setError(wrongRevision(outcome.endsAt, expected));
  return response;
}

const eventsOf = (request: Request, stream: string): Proposed[] =>
  request.getProposedMessagesList().map((message) => proposedOf(stream, message));

/** `count` is told each append as it arrives; an append of more bytes than `bytesMax` is rejected. */
export function makeBatchAppends(log: Log, faults: Faults, bytesMax: number, count: () => void) {
  const lastOf = (stream: string): number => (log.streams.get(stream)?.length ?? 0) - 1;

  function expectedBy(request: Request): number {
    const options = request.getOptions();
    if (options?.hasAny()) return lastOf(nameOf(options.getStreamIdentifier()));
    return options?.hasNoStream() ? -1 : Number(options?.getStreamPosition());
  }

  function outcomeOf(request: Request, expected: number, fault: AppendFault | undefined) {
    const stream = nameOf(request.getOptions()?.getStreamIdentifier());
    const events = eventsOf(request, stream);
    if (fault === 'unavailable') return notReady();
    if (fault === 'access denied') return accessDenied();
    if (events.reduce((sum, { data }) => sum + Buffer.byteLength(data, 'base64'), 0) > bytesMax) {
      return tooLarge(bytesMax);
    }
    if (fault === 'wrong revision') return { endsAt: lastOf(stream) };
    return log.append(stream, expected, events);
  }

  /** True when the fault has ended the stream, or left the append without an answer. */
  function failed(call: BatchCall, fault: AppendFault | undefined): boolean {
    if (fault === 'silent') return true;
    if (fault === 'clean end') call.end();
    else if (fault === 'reset') faults.reset();
    else if (fault === 'not leader') call.emit('error', faults.notLeader());
    else return false;
    return true;
  }

  function respond(call: BatchCall, request: Request, fault: AppendFault | undefined): void {
    if (failed(call, fault)) return;
    const expected = expectedBy(request);
    const response = responseTo(request, outcomeOf(request, expected, fault), expected);
    if (fault === 'answer lost') return;
    if (fault === 'cut off') return void call.end();
    if (fault === 'stray answer')
      call.write((response.cloneMessage() as Response).setCorrelationId(new UUID()));
    if (fault === 'slow') return void setTimeout(() => call.write(response), SLOW_MS);
    call.write(response);
    if (fault === 'answered twice') call.write(response);
  }

  return function batchAppend(call: BatchCall): void {
    call.on('error', () => undefined);
    call.on('data', (request: Request) => {
      count();
      faults.whenThawed(() => respond(call, request, faults.next('append')));
    });
    call.on('end', () => call.end());
  };
}
