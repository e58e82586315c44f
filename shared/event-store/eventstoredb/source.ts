import type { EventType } from '../../payment/events.ts';
import type { EncodedEvent } from '../codec.ts';
import { callOutcomeOf, unavailable } from './call-outcome.ts';
import type { Connection } from './connection.ts';
import { openRead, type ReadResponse } from './read-call.ts';
import { subscriptionOf } from './read-messages.ts';
import type { LogPosition } from './records.ts';
import type { Source, SourceListener } from './subscription.ts';

type SourceOptions = {
  from: LogPosition | undefined;
  types: readonly EventType[] | undefined;
  isLeftOut: (id: string) => boolean;
  refusals: Refusals;
};

export function sourceOf(
  { current }: Connection,
  { from, types, isLeftOut, refusals }: SourceOptions,
  listener: SourceListener,
): Source {
  let cancel = (): void => {
    isCancelled = true;
  };
  let isCancelled = false;
  let hold: { pause(): void; resume(): void } | undefined;

  const onResponse = (response: ReadResponse): void => {
    listener.sign();
    if ('read' in response) {
      if (isLeftOut(response.id)) listener.passed(response.position);
      else listener.event(response.read());
    } else if (response.hasConfirmation()) refusals.note();
    else if (response.hasCaughtUp()) listener.caughtUp();
    else if (response.hasFellBehind()) listener.fellBehind();
  };

  const onError = (error: unknown): void => {
    refusals.note(error);
    listener.ended({ error, reason: 'error' });
  };

  const opening = openRead(current(), {}, subscriptionOf(from, types), (call) => {
    hold = call;
    // In a later turn: a call that is cancelled as it starts or in its own listener may throw.
    cancel = () => void setImmediate(() => call.cancel());
    call.on('data', onResponse);
    // An 'error' event without a listener would end the process, so it stays.
    call.on('error', onError);
    call.on('end', () => listener.ended({ reason: 'ended by the server' }));
    call.on('close', () => listener.ended({ reason: 'closed' }));
    if (isCancelled) cancel();
  });
  opening.catch(onError);

  return {
    pause: () => hold?.pause(),
    resume: () => hold?.resume(),
    cancel: () => cancel(),
  };
}

/** Knows whether the server refuses the log: health reports it, and does not read $all itself. */
export function createRefusals() {
  let refusal: unknown;
  const note = (error?: unknown): void => {
    if (error === undefined) refusal = undefined;
    else if (callOutcomeOf(error) === 'refused') refusal = error;
  };
  return {
    /** Of a read of $all or a subscription to it: how it failed, or nothing once the server takes it. */
    note,
    /** Throws StoreUnavailable from a refused call on until one is answered. */
    rejectRefused(): void {
      if (refusal !== undefined) throw unavailable(refusal);
    },
  };
}

export type Refusals = ReturnType<typeof createRefusals>;

// Appends that stored nothing leave ids behind; the oldest are forgotten first.
const IDS_MAX = 10_000;

type Follower = { ids: Set<string>; types: readonly EventType[] | undefined };

/** The ids of own appends: a subscription to the others' events skips them unparsed (ADR-0068). */
export function createOwnEvents() {
  const followers = new Set<Follower>();

  return {
    /** Before an append is sent: its events may come back before its response does. */
    note(encoded: readonly EncodedEvent[]): void {
      for (const { ids, types } of followers) {
        for (const { recorded } of encoded) {
          if (types?.includes(recorded.event.type) ?? true) ids.add(recorded.id);
        }
        for (const id of ids) {
          if (ids.size <= IDS_MAX) break;
          ids.delete(id);
        }
      }
    },
    follow(types: readonly EventType[] | undefined, signal: AbortSignal): (id: string) => boolean {
      const follower: Follower = { ids: new Set(), types };
      if (!signal.aborted) {
        followers.add(follower);
        signal.addEventListener('abort', () => followers.delete(follower), { once: true });
      }
      return (id) => follower.ids.delete(id);
    },
  };
}
