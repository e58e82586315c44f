/** `/docs/errors`: the entries of shared/http/error-guide.ts as a page. */
import {
  anchorOf,
  ERROR_GUIDE,
  type ErrorEntry,
  PAYMENT_FAILED,
} from '../../shared/http/error-guide.ts';
import { ERROR_CODES, messageOf, statusOf } from '../../shared/http/errors.ts';
import { FAILURE_CODES } from '../../shared/payment/payment-events.ts';

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const html = (text: string): string => escaped(text).replace(/`([^`]+)`/g, '<code>$1</code>');

const entry = (
  code: string,
  status: number,
  message: string,
  { means, todo, stored }: ErrorEntry,
): string => {
  const anchor = anchorOf(code);
  return `<section id="${anchor}">
<h2><a href="#${anchor}">${code}</a> <small>${status}</small></h2>
<p><em>${escaped(message)}</em></p>
<p>${html(means)}</p>
<dl><dt>What to do</dt><dd>${html(todo)}</dd><dt>What was stored</dt><dd>${html(stored)}</dd></dl>
</section>`;
};

const FAILURES = FAILURE_CODES.map((code) => `<code>${code}</code>`).join(', ');

export const errorsHtml = (): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Errors · Payments API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/page.css">
</head>
<body>
<header class="page"><a class="name" href="/docs">Payments</a><nav><a href="/docs">API</a></nav></header>
<main class="text">
<h1>Errors</h1>
<p>Every response that is not a success has <code>error</code>, <code>message</code>, <code>details</code> and <code>timestamp</code>, and a <code>Link</code> header that leads here. <code>error</code> is stable: switch on it.</p>
${ERROR_CODES.map((code) => entry(code, statusOf(code), messageOf(code), ERROR_GUIDE[code])).join('\n')}
${entry(PAYMENT_FAILED, 402, 'The payment was declined.', ERROR_GUIDE[PAYMENT_FAILED])}
<p>Failure codes: ${FAILURES}.</p>
</main>
</body>
</html>
`;
