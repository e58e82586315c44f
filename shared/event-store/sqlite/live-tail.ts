import type { EventType } from '../../payment/events.ts';
import { isReadable } from '../codec.ts';
import type { Position, RecordedEvent, SubscriptionItem, UnreadableEvent } from '../port.ts';

// A subscriber may lag so far before it reads the store: 0.8 MB (ADR-0112).
const KEPT_EVENTS = 512;
const BATCH_EVENTS_MAX = 1000;

export type LiveTail = ReturnType<typeof liveTail>;

export function liveTail(last: number) {
  let kept: RecordedEvent[] = [];
  const listeners = new Set<() => void>();
  let end = last;

  return {
    last: (): number => end,
    /** A gap (another process wrote) starts the tail anew. */
    push(event: RecordedEvent): void {
      const position = Number(event.position);
      if (position !== end + 1) kept = [];
      kept.push(event);
      if (kept.length > KEPT_EVENTS) kept.shift();
      end = position;
    },
    after(position: number, limit: number): RecordedEvent[] | undefined {
      const from = position - (end - kept.length);
      return from < 0 ? undefined : kept.slice(from, from + limit);
    },
    listen(listener: () => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    announce(): void {
      for (const listener of listeners) listener();
    },
  };
}

/** 0 for the start. Throws RangeError for a text that is no position. */
export const positionNumber = (position: Position | null): number => {
  const number = Number(position ?? 0);
  const isWellFormed = position === null || /^\d+$/.test(position);
  if (!isWellFormed || !Number.isSafeInteger(number)) throw new RangeError('not a position');
  return number;
};

type ReadPage = (after: Position, limit: number) => Promise<(RecordedEvent | UnreadableEvent)[]>;

/** Throws as `readPage`, and RangeError past the end of the log: events its reader saw are gone. */
export async function* follow(
  tail: LiveTail,
  readPage: ReadPage,
  after: Position | null,
  signal: AbortSignal,
): AsyncGenerator<SubscriptionItem> {
  let position = positionNumber(after);
  if (position > tail.last()) throw new RangeError(`position ${after} is past the end of the log`);
  let wake = (): void => {};
  const stopListening = tail.listen(() => wake());
  const onAbort = (): void => wake();
  signal.addEventListener('abort', onAbort);
  let saidCaughtUp = false;
  try {
    while (!signal.aborted) {
      const events =
        tail.after(position, BATCH_EVENTS_MAX) ??
        (await readPage(String(position), BATCH_EVENTS_MAX));
      if (signal.aborted) return;
      const last = events.at(-1);
      if (last !== undefined) {
        yield { kind: 'events', events };
        position = Number(last.position);
        saidCaughtUp = false;
      } else if (!saidCaughtUp) {
        yield { kind: 'caught-up' };
        saidCaughtUp = true;
      } else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    stopListening();
    signal.removeEventListener('abort', onAbort);
  }
}

export async function* ofTypes(
  items: AsyncGenerator<SubscriptionItem>,
  types: readonly EventType[] | undefined,
): AsyncGenerator<SubscriptionItem> {
  for await (const item of items) {
    if (item.kind !== 'events' || types === undefined) yield item;
    else {
      const events = item.events.filter((e) => !isReadable(e) || types.includes(e.event.type));
      if (events.length > 0) yield { kind: 'events', events };
    }
  }
}
