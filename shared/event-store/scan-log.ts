import { type Scanned, type ScanOrder, type ScanTools, stepsOf } from '../runtime/scan.ts';
import { StoreFileUnusable, StoreUnavailable } from './errors.ts';
import type { LogReader, Position } from './port.ts';

/** A scan of a log, which a module exports by the name of its job (shared/runtime/scan.ts). */
export type LogScan<A, Y, R> = (log: LogReader, args: A, tools: ScanTools) => Scanned<Y, R>;

const asPromised = (error: unknown): unknown => {
  const { code, name, message } = Object(error);
  if (error instanceof StoreUnavailable) return error;
  if (code === 'EVENT_STORE_FILE_UNUSABLE') return new StoreFileUnusable(message);
  const isUnavailable = code === 'EVENT_STORE_UNAVAILABLE' || name === 'ScanThreadEnded';
  return isUnavailable ? new StoreUnavailable(message) : error;
};

async function* scanHere<Y, R>(
  log: LogReader,
  { calls = {}, signal = new AbortController().signal, ...order }: ScanOrder,
): AsyncGenerator<Y, R> {
  const call: ScanTools['call'] = async (name, ...values) => calls[name]?.(...(values as never[]));
  return yield* stepsOf<Y, R>(order, log, order.args, { signal, call });
}

/** In a thread where the store has one. Throws what the scan throws, from a thread as an Error. */
export async function* scanLog<Y, R>(store: LogReader, order: ScanOrder): AsyncGenerator<Y, R> {
  const { scan } = store.stored;
  try {
    return yield* scan === undefined ? scanHere<Y, R>(store, order) : scan<Y, R>(order);
  } catch (error) {
    throw asPromised(error);
  }
}

/** The number that a position begins with: for a graph or a bar, never for a decision. */
export const numberOf = (position: Position | null): number => Number.parseInt(position ?? '0', 10);

export type EventTotal = { total: number; isExact: boolean };

/** Exact where the store numbers its events and at the end; else an estimate. */
export const totalUpTo = (
  end: Position | null,
  { read, at }: { read: number; at: Position | null },
): EventTotal => {
  const [passed, whole] = [numberOf(at), numberOf(end)];
  if (at === end || passed === 0) return { total: read, isExact: at === end };
  const isExact = passed === read;
  return { total: Math.max(read, Math.round(read * (whole / passed))), isExact };
};
