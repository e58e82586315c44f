/** The shopper's page at the simulator (gaps §21). Its address holds the secret: no token, in no log line. */
import { hash } from 'node:crypto';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { WITH_HEAD } from '../../shared/http/server/health.ts';
import type { ShopperAuthentication } from './ledger.ts';
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

const STYLE = `
:root { color-scheme: light dark; --ink: light-dark(#14261d, #eef5f0); --page: light-dark(#eef4f0, #0f1613); --card: light-dark(#fff, #18221d); --line: light-dark(#c4d3ca, #35473d); --bank: light-dark(#0d5c3f, #7fd3ae); --on-bank: light-dark(#fff, #0b1a13); }
* { box-sizing: border-box; }
body { margin: 0; padding: 1rem; color: var(--ink); background: var(--page); font: 1.0625rem/1.5 system-ui, sans-serif; }
main { max-width: 26rem; margin: 4vh auto; padding: 1.5rem; background: var(--card); border: 1px solid var(--line); border-top: .5rem solid var(--bank); border-radius: 1rem; }
h1 { margin: 0 0 1rem; color: var(--bank); font-size: 1rem; }
strong { display: block; font-size: 1.75rem; }
button { display: block; width: 100%; min-height: 3.25rem; margin-top: 1rem; border: 2px solid var(--bank); border-radius: .75rem; color: var(--bank); background: none; font: inherit; font-weight: 600; cursor: pointer; }
form:first-of-type button { color: var(--on-bank); background: var(--bank); }
:focus-visible { outline: 3px solid var(--bank); outline-offset: 2px; }
`;

/** A browser applies `form-action` also to where the form's response leads. */
const HEADERS = {
  'content-security-policy': `default-src 'none'; style-src 'sha256-${hash('sha256', STYLE, 'base64')}'; form-action 'self' https: http://localhost:* http://127.0.0.1:*; frame-ancestors 'none'`,
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
};

const html = (...lines: string[]): string =>
  [
    '<!doctype html><html lang="en"><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>Simulated bank</title><style>${STYLE}</style>`,
    '<main><h1>Simulated bank</h1>',
    ...lines,
    '</main></html>',
  ].join('\n');

const button = (secret: string, action: string, label: string): string =>
  `<form method="post" action="${pagePath(secret)}/${action}"><button>${label}</button></form>`;

const pageOf = ({ secret, amount, currency }: ShopperAuthentication): string =>
  html(
    `<p>Is this payment yours? <strong>${(amount / 100).toFixed(2)} ${currency}</strong></p>`,
    button(secret, 'authenticate', 'Authenticate'),
    button(secret, 'fail', 'Fail'),
  );

const TOO_LATE = html(
  '<p>The payment waits no longer: nothing was changed. Go back to the shop.</p>',
);
const NO_PAGE = html('<p>No payment waits here.</p>');

const OPTIONS = TEST_CARDS.flatMap(({ number, token, outcome }) =>
  token === undefined ? [] : [[token, `…${number.slice(-4)}: ${outcome}`]],
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
  pages: Pick<Simulation, 'authentication' | 'find' | 'press'>,
  onPressed: (pressed: ShopperAuthentication) => void,
): void => {
  const send = (reply: FastifyReply, status: number, page: string) =>
    reply.code(status).headers(HEADERS).type('text/html; charset=utf-8').send(page);

  app.get(`${SHOPPER_PATH}browser.js`, WITH_HEAD, async (_request, reply) =>
    reply.type('text/javascript; charset=utf-8').send(LIBRARY),
  );
  app.get<Call>(`${PAGE}/:secret`, WITH_HEAD, async ({ params }, reply) => {
    const found = pages.authentication(params.secret);
    if (found === undefined) return send(reply, 404, NO_PAGE);
    const waits = pages.find(found.operationId)?.outcome === 'ACTION_REQUIRED';
    return send(reply, 200, waits ? pageOf(found) : TOO_LATE);
  });
  for (const action of ['authenticate', 'fail'] as const) {
    app.post<Call>(`${PAGE}/:secret/${action}`, async ({ params }, reply) => {
      const pressed = await pages.press(params.secret, action === 'authenticate');
      if (pressed === undefined) return send(reply, 404, NO_PAGE);
      if (!pressed.seen) return send(reply, 409, TOO_LATE);
      onPressed(pressed);
      // A header takes ASCII alone, and the shop may have written more.
      return reply.headers(HEADERS).redirect(new URL(pressed.returnUrl).href, 303);
    });
  }
};
