import type { Position } from './port.ts';

/** The number that a position begins with: for a graph or a bar, never for a decision. */
export const numberOf = (position: Position | null): number => Number.parseInt(position ?? '0', 10);

export type EventTotal = { total: number; isExact: boolean };

/**
 * Exact where the store numbers its events and at the end itself; else estimated by the length
 * passed.
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
