/** The text of an error, for a log line, a health page or an operator. */

/** The message of an error, also of one from another realm; `unknown` for a value without one. */
export const reasonOf = (error: unknown): string => {
  const { message } = Object(error);
  return typeof message === 'string' ? message : 'unknown';
};

/** The first line of an error's message: clients of engines add lines of advice below. */
export const firstLineOf = (error: unknown): string => reasonOf(error).split('\n', 1)[0] ?? '';
