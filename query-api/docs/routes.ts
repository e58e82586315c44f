/** The pages about the API: its descriptions as JSON, Swagger UI over them, the errors. No page needs a token. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import manifest from '../../package.json' with { type: 'json' };
import {
  anchorOf,
  ERROR_CODES,
  ERROR_GUIDE,
  ERRORS_PATH,
  type ErrorEntry,
  JSON_TYPE,
  messageOf,
  PAYMENT_FAILED,
  statusOf,
} from '../../shared/http/errors.ts';
import { CONSOLE_PATH, type DOCS_FILES, pageHeaders } from '../../shared/http/pages.ts';
import { WITH_HEAD } from '../../shared/http/server/health.ts';
import { FAILURE_CODES } from '../../shared/payment/fields.ts';

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const html = (text: string): string => escaped(text).replace(/`([^`]+)`/g, '<code>$1</code>');

const entry = (code: string, status: number, message: string, about: ErrorEntry): string => {
  const { means, todo, stored } = about;
  const anchor = anchorOf(code);
  return `<section id="${anchor}">
<h2><a href="#${anchor}">${code}</a> <small>${status}</small></h2>
<p><em>${escaped(message)}</em></p>
<p>${html(means)}</p>
<dl class="facts"><div><dt>What to do</dt><dd>${html(todo)}</dd></div>
<div><dt>What was stored</dt><dd>${html(stored)}</dd></div></dl>
</section>`;
};

const FAILURES = FAILURE_CODES.map((code) => `<code>${code}</code>`).join(', ');

const errorsHtml = (): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Errors · Payments API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${CONSOLE_PATH}/app/style.css">
</head>
<body>
<header><a class="name" href="/docs">Payments</a><nav><a href="/docs">API</a></nav></header>
<main>
<h1>Errors</h1>
<p>Every response that is not a success has <code>error</code>, <code>message</code>, <code>details</code> and <code>timestamp</code>, and a <code>Link</code> header that leads here. <code>error</code> is stable: switch on it.</p>
${ERROR_CODES.map((code) => entry(code, statusOf(code), messageOf(code), ERROR_GUIDE[code])).join('\n')}
${entry(PAYMENT_FAILED, 402, 'The payment was declined.', ERROR_GUIDE[PAYMENT_FAILED])}
<p>Failure codes: ${FAILURES}.</p>
</main>
</body>
</html>
`;

const ROOT = join(import.meta.dirname, '../..');
const SWAGGER = join(ROOT, 'node_modules/swagger-ui-dist');

const HTML = 'text/html; charset=utf-8';
const CSS = 'text/css; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';

/** No part of a request becomes part of a file's path. */
const FILES: Record<(typeof DOCS_FILES)[number], { type: string; file: string }> = {
  '/openapi.json': { type: JSON_TYPE, file: join(ROOT, 'docs/openapi.json') },
  '/openapi-audit.json': { type: JSON_TYPE, file: join(ROOT, 'docs/openapi-audit.json') },
  '/docs': { type: HTML, file: join(import.meta.dirname, 'index.html') },
  '/docs/': { type: HTML, file: join(import.meta.dirname, 'index.html') },
  '/docs/json': { type: JSON_TYPE, file: join(ROOT, 'docs/openapi.json') },
  '/docs/page.css': { type: CSS, file: join(import.meta.dirname, 'page.css') },
  '/docs/page.js': { type: SCRIPT, file: join(import.meta.dirname, 'page.js') },
  '/docs/swagger-ui.css': { type: CSS, file: join(SWAGGER, 'swagger-ui.css') },
  '/docs/swagger-ui-bundle.js': { type: SCRIPT, file: join(SWAGGER, 'swagger-ui-bundle.js') },
};

const HEADERS = pageHeaders();

const asPage = (reply: FastifyReply, type: string): FastifyReply =>
  type === HTML ? reply.type(type).headers(HEADERS) : reply.type(type);

const INDEX = JSON.stringify({
  name: 'payments',
  version: manifest.version,
  links: {
    console: CONSOLE_PATH,
    docs: '/docs',
    openapi: '/openapi.json',
    auditOpenapi: '/openapi-audit.json',
    errors: ERRORS_PATH,
    health: '/health/ready',
    payments: '/api/v1/payments',
  },
});

const acceptsHtml = ({ headers: { accept = '' } }: FastifyRequest): boolean =>
  /\btext\/html\b/i.test(accept);

export const registerDocs = (app: FastifyInstance): void => {
  for (const [path, { type, file }] of Object.entries(FILES)) {
    let bytes: Promise<Buffer> | undefined;
    app.get(path, WITH_HEAD, async (_request, reply) => {
      // One copy for all clients, also for those who do not read their response.
      bytes ??= readFile(file);
      bytes.catch(() => {
        bytes = undefined;
      });
      return asPage(reply, type).send(await bytes);
    });
  }
  app.get(ERRORS_PATH, WITH_HEAD, (_request, reply) => {
    asPage(reply, HTML).send(errorsHtml());
  });
  app.get('/', WITH_HEAD, (request, reply) => {
    // A browser is led to the console, a program gets the addresses.
    reply.header('vary', 'accept');
    if (acceptsHtml(request)) reply.redirect(CONSOLE_PATH, 303);
    else reply.type(JSON_TYPE).send(INDEX);
  });
};
