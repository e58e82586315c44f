/**
 * Resumes after the last delivered event: the server drops a reader that lags by 32 events, ends a
 * subscription at a leader change, and may fall silent without ending it.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EventType } from '../../payment/events.ts';
import { type BackOff, backOffMs, pause } from '../../runtime/back-off.ts';
import type { Position, SubscriptionItem } from '../port.ts';
import { callOutcomeOf, lineOf } from './call-outcome.ts';
import {
  changedAtServer,
  comparePositions,
  fromServer,
  isOfTypes,
  isOurs,
  type LogPosition,
  parsePosition,
  type ServerEvent,
} from './records.ts';

// About 6 MB. Beyond it the server waits, or drops us.
const BUFFER_EVENTS_MAX = 4096;
const BATCH_EVENTS_MAX = 1000;
/**
 * Gathers events after a batch, because KurrentDB 26 sends each alone and a reader writes once for
 * a batch. After a rest two events go out as they come.
 */
const GATHER_MS = { each: 2, max: 5, rest: 10 };
const BACK_OFF: BackOff = { minMs: 100, maxMs: 5000 };
// A sooner end without an event is a failure, so that the back-off grows.
const LASTED_MS = 5000;

export type Source = {
  pause(): void;
  resume(): void;
  cancel(): void;
};

export type SourceListener = {
  sign(): void;
  event(event: ServerEvent): void;
  passed(position: LogPosition): void;
  caughtUp(): void;
  fellBehind(): void;
  ended(ending: Ending): void;
};

type Subscribing = {
  types?: readonly EventType[] | undefined;
  /** `after` undefined: the start. Calls the listener in later turns only. */
  open(after: LogPosition | undefined, listener: SourceListener): Source;
  /** Throws when the store does not answer. */
  lags(after: LogPosition | undefined): Promise<boolean>;
  confirmMsMax: number;
  silenceMsMax: number;
  backOff?: BackOff | undefined;
  logger: {
    debug(details: object, message: string): void;
    warn(details: object, message: string): void;
  };
  onRemoval(stream: string): void;
  onResubscribe(): void;
};

type Ending = { error?: unknown; reason: string };

function startSession(options: Subscribing, after: LogPosition | undefined, signal: AbortSignal) {
  const events: ServerEvent[] = [];
  const startedAt = performance.now();
  let hasDelivered = false;
  let last = after;
  let confirmed = false;
  let live = false;
  let lastSign = performance.now();
  let ended: Ending | undefined;
  let wake = (): void => {};
  let watch: NodeJS.Timeout | undefined;

  const end = (ending: Ending): void => {
    if (ended !== undefined) return;
    ended = ending;
    clearInterval(watch);
    signal.removeEventListener('abort', onAbort);
    source.cancel();
    wake();
  };
  const onAbort = (): void => end({ reason: 'stopped' });
  const sign = (): void => {
    confirmed = true;
    lastSign = performance.now();
  };
  const isWanted = (event: ServerEvent): boolean =>
    isOurs(event) && isOfTypes(event, options.types);
  const isNext = (position: LogPosition | undefined): boolean =>
    ended === undefined && comparePositions(position, last) > 0;

  const onEvent = (event: ServerEvent): void => {
    hasDelivered = true;
    const changed = changedAtServer(event);
    if (!isNext(event.position) || !(isWanted(event) || changed !== undefined)) return;
    events.push(event);
    last = event.position;
    if (changed !== undefined) options.onRemoval(changed);
    if (events.length >= BUFFER_EVENTS_MAX) source.pause();
    wake();
  };

  const source = options.open(after, {
    sign,
    event: onEvent,
    passed: (position) => {
      hasDelivered = true;
      if (isNext(position)) last = position;
    },
    caughtUp: () => {
      live = true;
      wake();
    },
    fellBehind: () => {
      live = false;
    },
    ended: end,
  });

  let looking = false;
  const look = async (): Promise<void> => {
    const silentMs = performance.now() - lastSign;
    if (!confirmed) {
      if (silentMs > options.confirmMsMax) end({ reason: 'not confirmed in time' });
    } else if (silentMs > options.silenceMsMax && events.length === 0 && !looking) {
      looking = true;
      const from = last;
      const lags = await options.lags(from);
      looking = false;
      if (last !== from || ended !== undefined) return;
      if (lags) return end({ reason: 'silent while the log goes on' });
      lastSign = performance.now();
      if (!live) {
        live = true;
        wake();
      }
    }
  };
  watch = setInterval(() => {
    look().catch((error) => end({ error, reason: 'the store does not answer' }));
  }, Math.min(options.confirmMsMax, options.silenceMsMax) / 4);
  watch.unref();
  signal.addEventListener('abort', onAbort);
  if (signal.aborted) onAbort();

  return {
    isLive: (): boolean => live && events.length === 0,
    succeeded: (): boolean => hasDelivered || performance.now() - startedAt > LASTED_MS,
    ending: (): Ending | undefined => (events.length === 0 ? ended : undefined),
    last: (): LogPosition | undefined => last,
    take(): ServerEvent[] {
      const taken = events.splice(0, BATCH_EVENTS_MAX);
      if (taken.length > 0 && events.length < BUFFER_EVENTS_MAX / 2) source.resume();
      return taken;
    },
    isEmpty: (): boolean => events.length === 0,
    changed: (): Promise<void> =>
      new Promise((resolve) => {
        wake = resolve;
      }),
    end,
  };
}

type Session = ReturnType<typeof startSession>;

function itemsOf(batch: ServerEvent[]): SubscriptionItem[] {
  const items: SubscriptionItem[] = [];
  let events: (SubscriptionItem & { kind: 'events' })['events'] = [];
  for (const event of batch) {
    const stream = changedAtServer(event);
    if (stream !== undefined) items.push({ kind: 'removal', stream });
    else if (items.at(-1)?.kind === 'events') events.push(fromServer(event));
    else {
      events = [fromServer(event)];
      items.push({ kind: 'events', events });
    }
  }
  return items;
}

const gatherMs = (events: number): number => Math.min(GATHER_MS.max, GATHER_MS.each * events);

async function* deliver(session: Session): AsyncGenerator<SubscriptionItem> {
  let saidCaughtUp = false;
  let lastAt = Number.NEGATIVE_INFINITY;
  while (session.ending() === undefined) {
    if (!session.isEmpty()) {
      await nextTurn();
      const batch = session.take();
      const at = performance.now();
      yield* itemsOf(batch);
      saidCaughtUp = false;
      const nextAt = at - lastAt < GATHER_MS.rest ? at + gatherMs(batch.length) : at;
      lastAt = at;
      const earlyMs = nextAt - performance.now();
      if (earlyMs > 0) await pause(earlyMs);
    } else if (session.isLive() && !saidCaughtUp) {
      yield { kind: 'caught-up' };
      saidCaughtUp = true;
    } else {
      await session.changed();
    }
  }
}

/** Resumes after a failure. Throws RangeError for a text that is no position. */
export async function* subscribeAndResume(
  options: Subscribing,
  after: Position | null,
  signal: AbortSignal,
): AsyncGenerator<SubscriptionItem> {
  const backOff = options.backOff ?? BACK_OFF;
  let position = parsePosition(after);
  let failures = 0;
  for (let first = true; !signal.aborted; first = false) {
    if (!first) options.onResubscribe();
    const session = startSession(options, position, signal);
    try {
      for await (const item of deliver(session)) {
        if (signal.aborted) return;
        yield item;
      }
      position = session.last();
    } finally {
      session.end({ reason: 'left by its reader' });
    }
    if (signal.aborted) return;
    failures = session.succeeded() ? 0 : failures + 1;
    report(options.logger, session.ending() as Ending, failures);
    await pause(backOffMs(backOff, failures), signal);
  }
}

/** A drop is normal; the first of several failures in a row is a warning. */
function report(logger: Subscribing['logger'], { error, reason }: Ending, failures: number): void {
  const details = { reason, ...(error === undefined ? {} : { outcome: callOutcomeOf(error) }) };
  const message = error === undefined ? `event store: subscription ${reason}` : lineOf(error);
  if (failures === 1) logger.warn(details, `${message}; subscribing again until it succeeds`);
  else logger.debug(details, message);
}
