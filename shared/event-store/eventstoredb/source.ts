/** A subscription of the server, to all streams of ours or to some types of events. */
import type streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { EventType } from '../../payment/events.ts';
import type { Connection } from './connection.ts';
import { openCall } from './open-call.ts';
import { idOf, positionOf, serverEventOf, subscriptionOf } from './read-messages.ts';
import type { LogPosition } from './records.ts';
import type { Source, SourceListener } from './subscription.ts';

type SourceOptions = {
  /** The position to begin after; undefined: the start. */
  from: LogPosition | undefined;
  /** The types to send; undefined: all. */
  types: readonly EventType[] | undefined;
  /** True for the id of an event that nobody needs: it is not parsed. */
  isLeftOut: (id: string) => boolean;
};

type Response = InstanceType<typeof streamsPb.ReadResp>;

/** Subscribes on a client's stubs. The client itself would parse each event, and copy it twice. */
export function sourceOf(
  { current }: Connection,
  { from, types, isLeftOut }: SourceOptions,
  listener: SourceListener,
): Source {
  let cancel = (): void => {
    isCancelled = true;
  };
  let isCancelled = false;
  let hold: { pause(): void; resume(): void } | undefined;

  const onResponse = (response: Response): void => {
    listener.sign();
    const recorded = response.getEvent()?.getEvent();
    if (recorded !== undefined) {
      const position = positionOf(recorded);
      if (isLeftOut(idOf(recorded))) listener.passed(position);
      else listener.event(serverEventOf(recorded, position));
    } else if (response.hasCaughtUp()) listener.caughtUp();
    else if (response.hasFellBehind()) listener.fellBehind();
  };

  const opening = openCall(current(), {}, (stubs, metadata, options) => {
    const call = stubs.read(subscriptionOf(from, types), metadata, options);
    hold = call;
    // In a turn of its own: a call that is cancelled as it starts or in its own listener may throw.
    cancel = () => void setImmediate(() => call.cancel());
    call.on('data', onResponse);
    // The listener stays after the end: an 'error' event without a listener would end the process.
    call.on('error', (error) => listener.ended({ error, reason: 'error' }));
    call.on('end', () => listener.ended({ reason: 'ended by the server' }));
    call.on('close', () => listener.ended({ reason: 'closed' }));
    if (isCancelled) cancel();
    return call;
  });
  opening.catch((error) => listener.ended({ error, reason: 'error' }));

  return {
    pause: () => hold?.pause(),
    resume: () => hold?.resume(),
    cancel: () => cancel(),
  };
}
