/** The call Append: one stream, one expected revision, some events. */
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { ServerReadableStream, sendUnaryData } from '@grpc/grpc-js';
import { type Faults, streamDeleted } from './faults.ts';
import type { Log, Proposed } from './log.ts';
import { nameOf, proposedOf } from './messages.ts';
import type { Stored } from './stored.ts';

const { AppendResp } = streamsPb;
type AppendReq = InstanceType<typeof streamsPb.AppendReq>;
type AppendRespMessage = InstanceType<typeof AppendResp>;

/** For what the client itself appends: metadata, settings, probes. `count` is told each call as it arrives. */
export function makeAppends(log: Log, faults: Faults, count: () => void) {
  return function append(
    call: ServerReadableStream<AppendReq, AppendRespMessage>,
    callback: sendUnaryData<AppendRespMessage>,
  ): void {
    count();
    let stream = '';
    let expected = -1;
    const events: Proposed[] = [];
    call.on('error', () => undefined);
    call.on('data', (message: AppendReq) => {
      const options = message.getOptions();
      const proposed = message.getProposedMessage();
      if (options !== undefined) stream = nameOf(options.getStreamIdentifier());
      // Any revision is what the last one is now.
      if (options?.hasAny()) expected = (log.streams.get(stream)?.length ?? 0) - 1;
      if (proposed !== undefined) events.push(proposedOf(stream, proposed));
    });
    call.on('end', () =>
      faults.whenThawed(() => {
        const outcome = log.append(stream, expected, events);
        if ('stored' in outcome) callback(null, responseOf(outcome.stored.at(-1) as Stored));
        else callback(streamDeleted(stream));
      }),
    );
  };
}

/** One position for the whole batch, as the server does. */
function responseOf({ revision, position: at }: Stored): AppendRespMessage {
  const position = new AppendResp.Position();
  position.setCommitPosition(String(at)).setPreparePosition(String(at));
  const success = new AppendResp.Success().setCurrentRevision(String(revision));
  return new AppendResp().setSuccess(success.setPosition(position));
}
