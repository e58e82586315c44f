/** Sets an entry as the latest and drops the oldest above `max`. */
export const keepLatest = <T>(
  entries: Map<string, T>,
  key: string,
  value: T,
  max: number,
): void => {
  entries.delete(key);
  entries.set(key, value);
  if (entries.size <= max) return;
  const oldest = entries.keys().next();
  if (!oldest.done) entries.delete(oldest.value);
};
