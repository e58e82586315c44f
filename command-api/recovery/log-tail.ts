/**
 * Follows the intents of the log from the start of this process on, where other processes append to
 * it. An intent that comes then has just been stored, whatever the clock of its process says (gaps
 * §7, ADR-0068): this process waits for its call by a clock of its own that only goes forward. How
 * far the clocks differ is measured on the way. Its own intents it knows without the log (operate.ts).
 */
import { isReadable } from '../../shared/event-store/codec.ts';
import { isOfPayment } from '../../shared/event-store/fold-stream.ts';
import type { EventStore, LogEvent, Position } from '../../shared/event-store/port.ts';
import { INTENTS, isIntent } from '../../shared/payment/transitions.ts';
import { backOffMs, pause } from '../../shared/runtime/back-off.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { InFlight } from '../in-flight.ts';

export type LogTailOptions = {
  store: Pick<EventStore, 'end' | 'subscribe'>;
  inFlight: Pick<InFlight, 'sawIntent'>;
  /** Wall clock in milliseconds. */
  nowMs: () => number;
  logger: Pick<Logger, 'warn'>;
};

export type LogTail = {
  /** Resolves when everything that was stored before has been passed over for the first time. */
  caughtUp: Promise<void>;
  /**
   * The largest difference, in seconds, between this process's clock and the time of an event as it
   * came in, over the last one to two minutes; 0 where none came.
   */
  clockSkewSeconds(): number;
  stop(): void;
};

const AGAIN = { minMs: 500, maxMs: 30_000 };
const WINDOW_MS = 60_000;
/** A larger difference is worth a line in the log. */
const WARNED_SECONDS = 5;

/** The largest of the values of this window and of the one before it. */
const createWindowedMax = (windowMs: number) => {
  let [current, before, sinceMs] = [0, 0, performance.now()];
  const turn = (): void => {
    const passed = Math.floor((performance.now() - sinceMs) / windowMs);
    if (passed === 0) return;
    before = passed === 1 ? current : 0;
    current = 0;
    sinceMs += passed * windowMs;
  };
  return {
    /** Whether the value is the first above `limit` in this window. */
    add: (value: number, limit: number): boolean => {
      turn();
      const isFirst = value > limit && current <= limit;
      current = Math.max(current, value);
      return isFirst;
    },
    now: (): number => {
      turn();
      return Math.max(current, before);
    },
  };
};

/** Starts following. A log out of reach is tried again; nothing is thrown. */
export const followLogTail = (options: LogTailOptions): LogTail => {
  const { store, inFlight, nowMs, logger } = options;
  const stopping = new AbortController();
  const { promise: caughtUp, resolve: onCaughtUp } = Promise.withResolvers<void>();
  const skew = createWindowedMax(WINDOW_MS);
  let after: Position | null | undefined;
  /** Only what comes after everything older was stored a moment ago. */
  let isLive = false;

  const measure = (time: string): void => {
    const seconds = Math.abs(nowMs() - Date.parse(time)) / 1000;
    if (!skew.add(seconds, WARNED_SECONDS)) return;
    logger.warn(
      { seconds },
      'the clock of another process differs from this one: commands on its payments wait longer',
    );
  };

  const note = (event: LogEvent): void => {
    after = event.position;
    if (!isReadable(event) || !isOfPayment(event)) return;
    if (isLive) measure(event.time);
    if (isIntent(event.event)) inFlight.sawIntent(event.event.data.operationId);
  };

  const followOnce = async (): Promise<void> => {
    after ??= await store.end();
    for await (const item of store.subscribe(after, stopping.signal, INTENTS, 'others')) {
      if (item.kind === 'events') item.events.forEach(note);
      if (item.kind === 'caught-up') {
        isLive = true;
        onCaughtUp();
      }
    }
  };

  const follow = async (): Promise<void> => {
    for (let failures = 1; !stopping.signal.aborted; failures += 1) {
      await followOnce().catch(() => undefined);
      isLive = false;
      await pause(backOffMs(AGAIN, failures), stopping.signal);
    }
  };
  void follow();

  return { caughtUp, clockSkewSeconds: skew.now, stop: () => stopping.abort() };
};
