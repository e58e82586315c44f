/** The message of a thrown value, of any realm. */
export const reasonOf = (error: unknown): string => {
  const { message } = Object(error);
  return typeof message === 'string' ? message : 'unknown';
};

/** Clients of engines add lines of advice below the first. */
export const firstLineOf = (error: unknown): string => reasonOf(error).split('\n', 1)[0] ?? '';

const SQLITE_FULL = 13;

/** By the codes of the file system and of SQLite, also of the error's cause. */
export const isDiskFull = (error: unknown): boolean => {
  const { code, errcode, cause } = Object(error);
  return code === 'ENOSPC' || errcode === SQLITE_FULL || (cause !== undefined && isDiskFull(cause));
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
