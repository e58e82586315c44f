/** The call Append: one stream, one expected revision, some events. */
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { ServerReadableStream, sendUnaryData } from '@grpc/grpc-js';
import { type AppendFault, type Faults, SLOW_MS, streamDeleted } from './faults.ts';
import type { Appended, Log, Proposed } from './log.ts';
import { nameOf, proposedOf } from './messages.ts';
import type { Stored } from './stored.ts';

const { AppendResp } = streamsPb;
const { Empty } = sharedPb;
type AppendReq = InstanceType<typeof streamsPb.AppendReq>;
type AppendRespMessage = InstanceType<typeof AppendResp>;

/** `count` is told each call as it arrives. */
export function makeAppends(log: Log, faults: Faults, count: () => void) {
  return function append(
    call: ServerReadableStream<AppendReq, AppendRespMessage>,
    callback: sendUnaryData<AppendRespMessage>,
  ): void {
    count();
    let request: ReturnType<AppendReq['getOptions']>;
    const events: Proposed[] = [];
    call.on('error', () => undefined);
    call.on('data', (message: AppendReq) => {
      request ??= message.getOptions();
      const proposed = message.getProposedMessage();
      if (proposed === undefined) return;
      events.push(proposedOf(nameOf(request?.getStreamIdentifier()), proposed));
    });
    call.on('end', () => faults.whenThawed(() => responseAppend(faults.next('append'))));

    function responseAppend(fault: AppendFault | undefined): void {
      if (fault === 'silent') return;
      if (fault === 'reset') return void faults.reset();
      if (fault === 'clean end') return void callback(null, null);
      if (fault === 'unavailable') return void callback(faults.unavailable());
      if (fault === 'not leader') return void callback(faults.notLeader());
      const stream = nameOf(request?.getStreamIdentifier());
      const last = (log.streams.get(stream)?.length ?? 0) - 1;
      const expected = expectedOf(request, last);
      const outcome =
        fault === 'wrong revision' ? { endsAt: last } : log.append(stream, expected, events);
      if (fault === 'answer lost') return;
      const respond = (): void =>
        'deleted' in outcome
          ? callback(streamDeleted(outcome.deleted))
          : callback(null, responseOf(outcome, expected));
      if (fault === 'slow') setTimeout(respond, SLOW_MS);
      else respond();
    }
  };
}

/** Any revision is what the last one is now. */
function expectedOf(request: ReturnType<AppendReq['getOptions']>, last: number): number {
  if (request?.hasAny()) return last;
  return request?.hasNoStream() ? -1 : Number(request?.getRevision());
}

function responseOf(
  outcome: Exclude<Appended, { deleted: string }>,
  expected: number,
): AppendRespMessage {
  const response = new AppendResp();
  if ('stored' in outcome) {
    const last = outcome.stored.at(-1) as Stored;
    const success = new AppendResp.Success();
    success.setCurrentRevision(String(last.revision));
    // One position for the whole batch, as the server does.
    const position = new AppendResp.Position();
    position.setCommitPosition(String(last.position));
    position.setPreparePosition(String(last.position));
    success.setPosition(position);
    response.setSuccess(success);
    return response;
  }
  const wrong = new AppendResp.WrongExpectedVersion();
  if (outcome.endsAt < 0) wrong.setCurrentNoStream(new Empty());
  else wrong.setCurrentRevision(String(outcome.endsAt));
  if (expected < 0) wrong.setExpectedNoStream(new Empty());
  else wrong.setExpectedRevision(String(expected));
  response.setWrongExpectedVersion(wrong);
  return response;
}
