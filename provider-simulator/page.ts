/**
 * The page where a shopper authenticates at the simulator (gaps §21), in the process of the service or
 * of the simulator. Its address holds the secret: no token is needed, and no log line has it.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { WITH_HEAD } from '../shared/http/server/health.ts';
import type { Authentication } from './ledger.ts';
import type { Simulation } from './simulation.ts';
import { TEST_CARDS } from './test-cards.ts';

/** Addresses of a shopper's browser, which has no token. */
export const SHOPPER_PATH = '/simulator/';
const PAGE = `${SHOPPER_PATH}authentications`;

export const pagePath = (secret: string): string => `${PAGE}/${secret}`;

/** Undefined before it listens. */
export const listeningPort = (app: FastifyInstance): number | undefined => {
  const address = app.server.address();
  return typeof address === 'object' ? address?.port : undefined;
};

/** A browser applies `form-action` also to where the form's response leads. */
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; form-action 'self' https: http://localhost:* http://127.0.0.1:*; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
};

const html = (...lines: string[]): string =>
  [
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Simulated authentication</title>',
    '<main><h1>Simulated authentication</h1>',
    ...lines,
    '</main></html>',
  ].join('\n');

const button = (secret: string, action: string, label: string): string =>
  `<form method="post" action="${pagePath(secret)}/${action}"><button>${label}</button></form>`;

const pageOf = ({ secret, amount, currency }: Authentication): string =>
  html(
    `<p>Is this payment of ${(amount / 100).toFixed(2)} ${currency} yours?</p>`,
    button(secret, 'authenticate', 'Authenticate'),
    button(secret, 'fail', 'Fail'),
  );

const TOO_LATE = html('<p>The payment waits no longer: nothing was changed.</p>');
const NO_PAGE = html('<p>No payment waits here.</p>');

const OPTIONS = TEST_CARDS.flatMap(({ number, token, outcome }) =>
  token === undefined ? [] : [[token, `${number.replace(/\d{4}(?=\d)/g, '$& ')}: ${outcome}`]],
);
/** As much of Stripe.js as examples/checkout calls. No number is typed: each test card has a token. */
const LIBRARY = `window.Stripe = () => {
  const select = Object.assign(document.createElement('select'), { id: 'simulated-card' });
  for (const [token, text] of ${JSON.stringify(OPTIONS)}) select.add(new Option(text, token));
  const label = Object.assign(document.createElement('label'), { htmlFor: select.id, innerText: 'Card' });
  const fields = { mount: (place) => document.querySelector(place).append(label, select) };
  return {
    elements: () => ({ create: () => fields, submit: async () => ({}) }),
    createConfirmationToken: async () => ({ confirmationToken: { id: select.value } }),
  };
};
`;

type Call = { Params: { secret: string } };

export const registerPage = (
  app: FastifyInstance,
  pages: Pick<Simulation, 'authentication' | 'isWaiting' | 'press'>,
  onPressed: (pressed: Authentication) => void,
): void => {
  const send = (reply: FastifyReply, status: number, page: string) =>
    reply.code(status).headers(HEADERS).type('text/html; charset=utf-8').send(page);

  app.get(`${SHOPPER_PATH}browser.js`, WITH_HEAD, async (_request, reply) =>
    reply.type('text/javascript; charset=utf-8').send(LIBRARY),
  );
  app.get<Call>(`${PAGE}/:secret`, WITH_HEAD, async ({ params }, reply) => {
    const found = pages.authentication(params.secret);
    if (found === undefined) return send(reply, 404, NO_PAGE);
    return send(reply, 200, pages.isWaiting(found.operationId) ? pageOf(found) : TOO_LATE);
  });
  for (const action of ['authenticate', 'fail'] as const) {
    app.post<Call>(`${PAGE}/:secret/${action}`, async ({ params }, reply) => {
      const pressed = pages.press(params.secret, action === 'authenticate');
      if (pressed === undefined) return send(reply, 404, NO_PAGE);
      if (!pressed.seen) return send(reply, 409, TOO_LATE);
      onPressed(pressed);
      return reply.headers(HEADERS).redirect(pressed.returnUrl, 303);
    });
  }
};
