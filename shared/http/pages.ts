/** The addresses of the pages, in every mode. None needs a token, and each takes GET and HEAD alone. */
import { ERRORS_PATH } from './error-guide.ts';

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
