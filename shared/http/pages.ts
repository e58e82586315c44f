/** The addresses of the pages, in every mode. None needs a token, and each takes GET and HEAD alone. */
import { ERRORS_PATH } from './errors.ts';

export const DOCS_FILES = [
  '/openapi.json',
  '/openapi-audit.json',
  '/docs',
  '/docs/',
  '/docs/json',
  '/docs/page.css',
  '/docs/page.js',
  '/docs/swagger-ui.css',
  '/docs/swagger-ui-bundle.js',
] as const;

export const CONSOLE_PATH = '/console';

export const PAGES: readonly string[] = [
  '/',
  ...DOCS_FILES,
  ERRORS_PATH,
  CONSOLE_PATH,
  `${CONSOLE_PATH}/*`,
];

/** This origin only, in no frame. `inlineScripts` are hashes such as `'sha256-…'`. */
export const pageHeaders = (...inlineScripts: readonly string[]): Record<string, string> => ({
  'content-security-policy': [
    "default-src 'none'",
    ["script-src 'self'", ...inlineScripts].join(' '),
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
});
