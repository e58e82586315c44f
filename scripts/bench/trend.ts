/** What a curve says about sizes that were not measured. */

/** A value at a number of payments. */
type Point = { size: number; value: number };

/** Of how many of the largest sizes the line is drawn; of fewer, no line says anything. */
const POINTS = 3;

/**
 * The value at `size` on the line through the last three points, by least squares. `by` says what the
 * value grows with: the number of payments (bytes, starts), or its logarithm (trees, caches). NaN for
 * fewer than three points, and where the line says less than nothing: that is noise.
 */
export const reckoned = (points: readonly Point[], size: number, by: 'size' | 'log'): number => {
  const last = points.slice(-POINTS);
  if (last.length < POINTS) return Number.NaN;
  const x = (of: number): number => (by === 'log' ? Math.log10(of) : of);
  const meanX = last.reduce((sum, point) => sum + x(point.size), 0) / last.length;
  const meanY = last.reduce((sum, point) => sum + point.value, 0) / last.length;
  const spread = last.reduce((sum, point) => sum + (x(point.size) - meanX) ** 2, 0);
  const slope =
    last.reduce((sum, { size: at, value }) => sum + (x(at) - meanX) * (value - meanY), 0) / spread;
  const value = meanY + slope * (x(size) - meanX);
  return value > 0 ? value : Number.NaN;
};
