/** The forms of card numbers (gaps §3). */

export const CARD_DIGITS_MIN = 12;
export const CARD_DIGITS_MAX = 19;
export const CARD_NUMBER = /^[0-9]{12,19}$/;

/** Long enough for a card number (gaps §4). */
export const TWELVE_DIGITS = /[0-9]{12}/;
export const WITHOUT_TWELVE_DIGITS = /^(?![\s\S]*[0-9]{12})/;
