/** The digits of a card number, by which it is told apart from any other text. */

/** How many digits a card number has (gaps §3). */
export const CARD_DIGITS_MIN = 12;
export const CARD_DIGITS_MAX = 19;
/** A text that is a card number by its shape (gaps §3). */
export const CARD_NUMBER = /^[0-9]{12,19}$/;

/** A run of digits that is long enough for a card number (gaps §4). */
export const TWELVE_DIGITS = /[0-9]{12}/;
/** A text without such a run. */
export const WITHOUT_TWELVE_DIGITS = /^(?![\s\S]*[0-9]{12})/;
