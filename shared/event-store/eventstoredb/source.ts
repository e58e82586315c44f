/** A subscription of the server, to all streams of ours or to some types of events. */
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { EventType } from '../../payment/events.ts';
import { callOutcomeOf, unavailable } from './call-outcome.ts';
import type { Connection } from './connection.ts';
import { openCall } from './open-call.ts';
import { type SentEvent, sentEventOf, subscriptionOf } from './read-messages.ts';
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

const { ReadResp } = streamsPb;
type Response = InstanceType<typeof ReadResp>;
const responseOf = (bytes: Buffer): Response | SentEvent =>
  sentEventOf(bytes) ?? ReadResp.deserializeBinary(bytes);

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

  const onResponse = (response: Response | SentEvent): void => {
    listener.sign();
    if ('read' in response) {
      if (isLeftOut(response.id)) listener.passed(response.position);
      else listener.event(response.read());
    } else if (response.hasCaughtUp()) listener.caughtUp();
    else if (response.hasFellBehind()) listener.fellBehind();
  };

  const opening = openCall(current(), {}, (stubs, metadata, options) => {
    const { path, requestSerialize } = streamsGrpc.StreamsService.read;
    const request = subscriptionOf(from, types);
    const call = stubs.makeServerStreamRequest(
      path,
      requestSerialize,
      responseOf,
      request,
      metadata,
      options,
    );
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

/**
 * Knows whether the server refuses the log to a subscription: no right to read $all, a password that was
 * changed. That does not end by itself, so health says it, which makes no read of $all itself.
 */
export function createRefusals() {
  let refusal: unknown;
  return {
    /** Throws StoreUnavailable from a refused subscription on until one is answered. */
    rejectRefused(): void {
      if (refusal !== undefined) throw unavailable(refusal);
    },
    /** The listener, of which what the server says is noted. */
    heard: (listener: SourceListener): SourceListener => ({
      ...listener,
      sign: () => {
        refusal = undefined;
        listener.sign();
      },
      ended: (ending) => {
        const { error } = ending;
        if (error !== undefined && callOutcomeOf(error) === 'refused') refusal = error;
        listener.ended(ending);
      },
    }),
  };
}
