/** The message of an error, also of another realm; `unknown` for a value without one. */
export const reasonOf = (error: unknown): string => {
  const { message } = Object(error);
  return typeof message === 'string' ? message : 'unknown';
};

/** Clients of engines add lines of advice below the first. */
export const firstLineOf = (error: unknown): string => reasonOf(error).split('\n', 1)[0] ?? '';

const SQLITE_FULL = 13;

/** Also where the error was wrapped and only its message is left. */
export const isDiskFull = (error: unknown): boolean => {
  const { code, errcode } = Object(error);
  return (
    code === 'ENOSPC' || errcode === SQLITE_FULL || /disk is full|ENOSPC/.test(reasonOf(error))
  );
};
