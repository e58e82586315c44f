/** Also of another realm. */
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

/** Control characters, line separators, and signs that turn the direction of a text. */
const CONTROL_SIGNS =
  /(?![\n\t])[\p{Cc}\u{61c}\u{200e}\u{200f}\u{2028}-\u{202e}\u{2066}-\u{2069}]/gu;

const PLAIN = /^[\t\n -~]*$/;

const escaped = (sign: string): string => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Writes signs that a terminal obeys as `\u202e`. JSON on one line keeps its meaning. */
export const withoutControlSigns = (text: string): string =>
  PLAIN.test(text) ? text : text.replace(CONTROL_SIGNS, escaped);
