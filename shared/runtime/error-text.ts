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
  return (
    code === 'ENOSPC' || errcode === SQLITE_FULL || /disk is full|ENOSPC/.test(reasonOf(error))
  );
};
