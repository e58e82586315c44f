/** What an error says, for a log line, a health page or an operator. */

/** The message of an error; `unknown` for what has none. An error of another realm counts too. */
export const reasonOf = (error: unknown): string => {
  const { message } = Object(error);
  return typeof message === 'string' ? message : 'unknown';
};

/** The first line of its message: engines add lines of advice below. */
export const firstLineOf = (error: unknown): string => reasonOf(error).split('\n', 1)[0] ?? '';
