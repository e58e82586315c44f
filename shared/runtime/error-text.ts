/** The message of a thrown value, of any realm. */
export const reasonOf = (error: unknown): string => {
  const { message } = Object(error);
  return typeof message === 'string' ? message : 'unknown';
};

/** Clients of engines add lines of advice below the first. */
export const firstLineOf = (error: unknown): string => reasonOf(error).split('\n', 1)[0] ?? '';

const SQLITE_FULL = 13;

/** Also where only the message is left of a wrapped error. */
export const isDiskFull = (error: unknown): boolean => {
  const { code, errcode } = Object(error);
  const isFull = code === 'ENOSPC' || errcode === SQLITE_FULL;
  return isFull || /disk is full|ENOSPC/.test(reasonOf(error));
};

/** For `catch`: `handle` is called for an error of this class. Throws any other. */
export const onError =
  <E extends Error, T>(kind: abstract new (...args: never[]) => E, handle: (error: E) => T) =>
  (error: unknown): T => {
    if (error instanceof kind) return handle(error);
    throw error;
  };

/** What `read` gives; `otherwise` where it throws anything. */
export const orElse = <T, U>(otherwise: U, read: () => T): T | U => {
  try {
    return read();
  } catch {
    return otherwise;
  }
};
