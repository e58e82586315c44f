/** The forms of card numbers, and of the results of a 3-D Secure authentication (gaps §3, §21). */

export const CARD_DIGITS_MIN = 12;
export const CARD_DIGITS_MAX = 19;
export const CARD_NUMBER = /^[0-9]{12,19}$/;

/** Long enough for a card number (gaps §4). */
export const TWELVE_DIGITS = /[0-9]{12}/;
export const WITHOUT_TWELVE_DIGITS = /^(?![\s\S]*[0-9]{12})/;

/** Of the protocol, EMV 3-D Secure. */
export const THREE_D_SECURE_VERSIONS = ['2.1.0', '2.2.0', '2.3.1'] as const;
/** Why a card scheme may forgo the authentication. */
export const EXEMPTIONS = ['LOW_RISK', 'NONE'] as const;
/** The electronic commerce indicator: what the authentication came to. */
export const ECI = /^[0-9]{2}$/;
/** 28 or 32 characters of base64: the cardholder's bank proves the authentication by it. */
export const CRYPTOGRAM =
  /^(?:[A-Za-z0-9+/]{4}){6,7}(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)$/;
/** The directory server's id of the authentication. */
export const UUID = /^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$/;
