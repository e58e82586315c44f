/** Signs that a terminal or an editor obeys instead of showing them. */

/**
 * Control characters (C0, C1, delete), the separators of lines and paragraphs, and those that turn
 * the direction of a text, so that it reads as something else. A tab and a line break are left alone.
 */
const CONTROL_SIGNS =
  /(?![\n\t])[\p{Cc}\u{61c}\u{200e}\u{200f}\u{2028}-\u{202e}\u{2066}-\u{2069}]/gu;

/** Nearly every text has nothing but these, which one quick test tells. */
const PLAIN = /^[\t\n -~]*$/;

const escaped = (sign: string): string => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`;

/**
 * Shows such signs as `\u202e`, for every text that came from a request and leads to a person: the
 * log and the command line. JSON stays JSON with the same meaning, as long as it is on one line.
 */
export const withoutControlSigns = (text: string): string =>
  PLAIN.test(text) ? text : text.replace(CONTROL_SIGNS, escaped);
