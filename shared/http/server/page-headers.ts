/** The headers of a page that a browser shows: nothing from elsewhere, and nobody else's frame. */

/**
 * Scripts, styles and requests of this origin only; icons may be `data:` images.
 * @param inlineScripts hashes such as `'sha256-…'` of the scripts that stand in the page itself
 */
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
