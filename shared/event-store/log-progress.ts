/** How far a reader of the log has come, by places: nothing is counted for it. */
import type { Position } from './port.ts';

/** A position begins with a number that grows: for a graph or a bar, never for a decision. */
export const numberOf = (position: Position | null): number => Number.parseInt(position ?? '0', 10);

/** Events up to a place: about so many, unless `isExact`. */
export type EventTotal = { total: number; isExact: boolean };

/**
 * Events from the start of the log up to `end`, for a reader that has read `read` of them, up to `at`. Exact
 * where the store numbers its events and at the end itself; else an estimate by the length passed.
 */
export const totalUpTo = (
  end: Position | null,
  { read, at }: { read: number; at: Position | null },
): EventTotal => {
  const [passed, whole] = [numberOf(at), numberOf(end)];
  if (at === end || passed === 0) return { total: read, isExact: at === end };
  const isExact = passed === read;
  return { total: Math.max(read, Math.round(read * (whole / passed))), isExact };
};
