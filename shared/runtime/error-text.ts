/** The text of an error, for a log line, a health page or an operator. */

/** The message of an error, also of one from another realm; `unknown` for a value without one. */
export const reasonOf = (error: unknown): string => {
  const { message } = Object(error);
  return typeof message === 'string' ? message : 'unknown';
};

/** The first line of an error's message: clients of engines add lines of advice below. */
export const firstLineOf = (error: unknown): string => reasonOf(error).split('\n', 1)[0] ?? '';

const SQLITE_FULL = 13;

/** Whether the disk is full, also where the error of the disk was wrapped and its message alone is left. */
export const isDiskFull = (error: unknown): boolean => {
  const { code, errcode } = Object(error);
  return (
    code === 'ENOSPC' || errcode === SQLITE_FULL || /disk is full|ENOSPC/.test(reasonOf(error))
  );
};
