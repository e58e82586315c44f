/** Resumes where the server drops a reader 32 events behind, changes its leader, or falls silent. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EventType } from '../../payment/events.ts';
import { type BackOff, backOffMs, pause } from '../../runtime/back-off.ts';
import { slicesOf } from '../../runtime/scheduling.ts';
import type { LogEvent, Position, SubscriptionItem } from '../port.ts';
import { callOutcomeOf, lineOf, type Refusals } from './call-outcome.ts';
import type { EventStoreDbOptions } from './connection.ts';
import type { ReadCall } from './read-call.ts';
import type { ReadResponse } from './read-messages.ts';
import {
  changedAtServer,
  comparePositions,
  isOfTypes,
  isOurs,
  type LogPosition,
  parsePosition,
  type ServerEvent,
} from './records.ts';

// About 6 MB. Beyond it the server waits, or drops us.
const BUFFER_EVENTS_MAX = 4096;
const BATCH_EVENTS_MAX = 1000;
/** KurrentDB 26 sends events singly, and a reader writes once a batch. After a rest two go out as they come. */
const GATHER_MS = { each: 2, max: 5, rest: 10 };
// A look for the leader has taken a second before this begins.
const BACK_OFF: BackOff = { minMs: 100, maxMs: 500 };
// A sooner end without an event is a failure, so that the back-off grows.
const LASTED_MS = 5000;

type Subscribing = {
  types?: readonly EventType[] | undefined;
  refusals: Pick<Refusals, 'note'>;
  /** `after` undefined: the start. Calls `listen` before anything can come. Rejects without a connection. */
  open(after: LogPosition | undefined, listen: (call: ReadCall) => void): Promise<unknown>;
  /** Throws when the store does not answer. */
  lags(after: LogPosition | undefined): Promise<boolean>;
  confirmMsMax: number;
  silenceMsMax: number;
  backOff?: BackOff | undefined;
  logger: EventStoreDbOptions['logger'];
  onRemoval(stream: string): void;
  /** May read the event's stream: throws when the store does not answer. */
  decode(event: ServerEvent): LogEvent | Promise<LogEvent>;
};

type Ending = { error?: unknown; reason: string };

const newSession = (after: LogPosition | undefined) => ({
  /** Not yet taken by the reader. */
  events: [] as ServerEvent[],
  last: after,
  hasDelivered: false,
  confirmed: false,
  live: false,
  lastSign: performance.now(),
  looking: false,
  ended: undefined as Ending | undefined,
  call: undefined as ReadCall | undefined,
  watch: undefined as NodeJS.Timeout | undefined,
  wake: (): void => undefined,
});
type Session = ReturnType<typeof newSession>;

/** In a later turn: a call that is cancelled as it starts or in its own listener may throw. */
const leave = ({ call }: Session): void => void setImmediate(() => call?.cancel());

const end = (session: Session, ending: Ending): void => {
  if (session.ended !== undefined) return;
  session.ended = ending;
  clearInterval(session.watch);
  leave(session);
  session.wake();
};

const goLive = (session: Session): void => {
  session.live = true;
  session.wake();
};

const note = (session: Session, { types, onRemoval }: Subscribing, event: ServerEvent): void => {
  const { events, call } = session;
  const changed = changedAtServer(event);
  if (changed !== undefined) onRemoval(changed);
  else if (!isOurs(event) || !isOfTypes(event, types)) return;
  events.push(event);
  session.last = event.position;
  if (events.length >= BUFFER_EVENTS_MAX) call?.pause();
  session.wake();
};

/** Ends a session that is not confirmed in time, or silent while the log goes on. */
const look = async (session: Session, options: Subscribing): Promise<void> => {
  const { events, confirmed, looking, last: from } = session;
  const silentMs = performance.now() - session.lastSign;
  if (!confirmed && silentMs > options.confirmMsMax)
    end(session, { reason: 'not confirmed in time' });
  if (!confirmed || silentMs <= options.silenceMsMax || events.length > 0 || looking) return;
  session.looking = true;
  const lags = await options.lags(from);
  session.looking = false;
  if (session.last !== from || session.ended !== undefined) return;
  if (lags) return end(session, { reason: 'silent while the log goes on' });
  session.lastSign = performance.now();
  if (!session.live) goLive(session);
};

const take = (session: Session, options: Subscribing, response: ReadResponse): void => {
  session.confirmed = true;
  session.lastSign = performance.now();
  if ('streamId' in response) {
    session.hasDelivered = true;
    const isNext = comparePositions(response.position, session.last) > 0;
    if (session.ended === undefined && isNext) note(session, options, response);
  } else if (response.confirmed) options.refusals.note();
  else if (response.caughtUp) goLive(session);
  else if (response.fellBehind) session.live = false;
};

const startSession = (options: Subscribing, after: LogPosition | undefined): Session => {
  const session = newSession(after);
  const fail = (error: unknown): void => {
    options.refusals.note(error);
    end(session, { error, reason: 'error' });
  };
  const opening = options.open(after, (call) => {
    session.call = call;
    call.on('data', (response: ReadResponse) => take(session, options, response));
    // An 'error' event without a listener would end the process, so it stays.
    call.on('error', fail);
    call.on('end', () => end(session, { reason: 'ended by the server' }));
    call.on('close', () => end(session, { reason: 'closed' }));
    if (session.ended !== undefined) leave(session);
  });
  opening.catch(fail);
  const onFailure = (error: unknown) =>
    end(session, { error, reason: 'the store does not answer' });
  session.watch = setInterval(() => {
    look(session, options).catch(onFailure);
  }, Math.min(options.confirmMsMax, options.silenceMsMax) / 4).unref();
  return session;
};

/** Tried until it succeeds, so that no event is left out; undefined once `signal` is aborted. */
const decoded = async (
  { decode, backOff = BACK_OFF, logger }: Subscribing,
  event: ServerEvent,
  signal: AbortSignal,
): Promise<LogEvent | undefined> => {
  for (let failures = 0; !signal.aborted; failures += 1) {
    try {
      return await decode(event);
    } catch (error) {
      const level = failures === 0 ? 'warn' : 'debug';
      logger[level]({}, `${(error as Error).message}; its stream is read again until it succeeds`);
      await pause(backOffMs(backOff, failures), signal);
    }
  }
  return undefined;
};

async function* itemsOf(
  options: Subscribing,
  batch: ServerEvent[],
  signal: AbortSignal,
): AsyncGenerator<SubscriptionItem> {
  let events: LogEvent[] = [];
  for await (const slice of slicesOf(batch)) {
    for (const event of slice) {
      const next = changedAtServer(event) ?? (await decoded(options, event, signal));
      if (next === undefined) return;
      if (typeof next !== 'string') events.push(next);
      else {
        if (events.length > 0) yield { kind: 'events', events };
        yield { kind: 'removal', stream: next };
        events = [];
      }
    }
  }
  if (events.length > 0) yield { kind: 'events', events };
}

const gatherMs = (events: number): number => Math.min(GATHER_MS.max, GATHER_MS.each * events);

async function* deliver(
  options: Subscribing,
  session: Session,
  signal: AbortSignal,
): AsyncGenerator<SubscriptionItem> {
  let saidCaughtUp = false;
  let lastAt = Number.NEGATIVE_INFINITY;
  const { events } = session;
  while (!signal.aborted && (session.ended === undefined || events.length > 0)) {
    if (events.length > 0) {
      await nextTurn();
      const batch = events.splice(0, BATCH_EVENTS_MAX);
      if (events.length < BUFFER_EVENTS_MAX / 2) session.call?.resume();
      const at = performance.now();
      yield* itemsOf(options, batch, signal);
      saidCaughtUp = false;
      const nextAt = at - lastAt < GATHER_MS.rest ? at + gatherMs(batch.length) : at;
      lastAt = at;
      const earlyMs = nextAt - performance.now();
      if (earlyMs > 0) await pause(earlyMs);
    } else if (session.live && !saidCaughtUp) {
      yield { kind: 'caught-up' };
      saidCaughtUp = true;
    } else {
      await new Promise<void>((resolve) => {
        session.wake = resolve;
      });
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
  while (!signal.aborted) {
    const startedAt = performance.now();
    const session = startSession(options, position);
    const stop = (): void => end(session, { reason: 'stopped' });
    signal.addEventListener('abort', stop);
    try {
      for await (const item of deliver(options, session, signal)) {
        if (signal.aborted) return;
        yield item;
      }
      position = session.last;
    } finally {
      signal.removeEventListener('abort', stop);
      end(session, { reason: 'left by its reader' });
    }
    if (signal.aborted) return;
    const succeeded = session.hasDelivered || performance.now() - startedAt > LASTED_MS;
    failures = succeeded ? 0 : failures + 1;
    report(options.logger, session.ended as Ending, failures);
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
