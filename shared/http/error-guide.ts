/** The text of docs/errors.md and of the page `/docs/errors`. Text between backticks is code, on both. */
import guide from './error-guide.json' with { type: 'json' };
import type { ErrorCode } from './errors.ts';

/** A create that the provider declined: its body has no code (402). */
export const PAYMENT_FAILED = 'PAYMENT_FAILED';

export type ErrorEntry = { means: string; todo: string; stored: string };

export const ERROR_GUIDE: Readonly<Record<ErrorCode | typeof PAYMENT_FAILED, ErrorEntry>> = guide;

export const anchorOf = (code: string): string => code.toLowerCase();

export const ERRORS_PATH = '/docs/errors';

/** The `Link` header of an error (RFC 8288). */
export const helpLink = (code: string): string => `<${ERRORS_PATH}#${anchorOf(code)}>; rel="help"`;
