/** What a curve says about sizes that were not measured. */

/** A value at a number of payments. */
export type Point = { size: number; value: number };

/** Of how many of the largest sizes the line is drawn. */
const POINTS_MAX = 3;

/**
 * The value at `size` on the line through the last three points, by least squares. `by` says what the
 * value grows with: the number of payments (bytes, replays), or its logarithm (trees, caches). NaN for
 * fewer than two points.
 */
export const reckoned = (points: readonly Point[], size: number, by: 'size' | 'log'): number => {
  const last = points.slice(-POINTS_MAX);
  if (last.length < 2) return Number.NaN;
  const x = (of: number): number => (by === 'log' ? Math.log10(of) : of);
  const meanX = last.reduce((sum, point) => sum + x(point.size), 0) / last.length;
  const meanY = last.reduce((sum, point) => sum + point.value, 0) / last.length;
  const spread = last.reduce((sum, point) => sum + (x(point.size) - meanX) ** 2, 0);
  const slope =
    last.reduce((sum, { size: at, value }) => sum + (x(at) - meanX) * (value - meanY), 0) / spread;
  return meanY + slope * (x(size) - meanX);
};
