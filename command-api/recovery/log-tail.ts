/** An intent that comes now was stored just now, whatever its process's clock says (ADR-0068). */
import { isReadable } from '../../shared/event-store/codec.ts';
import { isOfPayment } from '../../shared/event-store/fold-stream.ts';
import type { EventStore, LogEvent, Position } from '../../shared/event-store/port.ts';
import { INTENTS, isIntent } from '../../shared/payment/transitions.ts';
import { backOffMs, pause } from '../../shared/runtime/back-off.ts';
import type { AskDeps } from './ask.ts';

const AGAIN = { minMs: 500, maxMs: 30_000 };
const WINDOW_MS = 60_000;
const WARNED_SECONDS = 5;

/** Tries again while the log is out of reach. Never throws. */
export const followLogTail = (
  store: Pick<EventStore, 'end' | 'subscribe'>,
  { inFlight, nowMs, logger }: Pick<AskDeps, 'inFlight' | 'nowMs' | 'logger'>,
) => {
  const stopping = new AbortController();
  const { promise: caughtUp, resolve: onCaughtUp } = Promise.withResolvers<void>();
  /** The largest in seconds, in this window and in the one before. */
  const skew = { now: 0, before: 0 };
  const turning = setInterval(() => {
    skew.before = skew.now;
    skew.now = 0;
  }, WINDOW_MS).unref();
  let after: Position | null | undefined;
  /** Only events after the first catch-up were stored a moment ago. */
  let isLive = false;

  const measure = (time: string): void => {
    const seconds = Math.abs(nowMs() - Date.parse(time)) / 1000;
    const isFirst = seconds > WARNED_SECONDS && skew.now <= WARNED_SECONDS;
    skew.now = Math.max(skew.now, seconds);
    if (!isFirst) return;
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
    for await (const item of store.subscribe(after, stopping.signal, INTENTS)) {
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

  return {
    caughtUp,
    clockSkewSeconds: () => Math.max(skew.now, skew.before),
    stop: () => {
      clearInterval(turning);
      stopping.abort();
    },
  };
};

export type LogTail = ReturnType<typeof followLogTail>;
