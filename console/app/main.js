/** The console: the frame around every page, and the page that the address names. */
import { render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.js';
import { FindPage } from './pages/find.js';
import { LivePage } from './pages/live.js';
import { MerchantPage } from './pages/merchant.js';
import { OperatePage } from './pages/operate.js';
import { PaymentPage } from './pages/payment.js';
import { SignIn } from './pages/sign-in.js';
import { VerifyPage } from './pages/verify.js';
import { WebhooksPage } from './pages/webhooks.js';
import { Clock } from './parts.js';
import { usePlace } from './router.js';
import { closeSession, currentSession, hasScope, onSession, startSession } from './session.js';

const PAGES = {
  live: { title: 'Live', scope: 'audit:read', component: LivePage },
  find: { title: 'Find', scope: 'audit:read', component: FindPage },
  verify: { title: 'Verify', scope: 'audit:read', component: VerifyPage },
  operate: { title: 'Operate', scope: 'ops:admin', component: OperatePage },
  merchant: { title: 'My payments', scope: 'payments:read', component: MerchantPage },
  webhooks: { title: 'My webhooks', scope: 'payments:read', component: WebhooksPage },
};

/** Pages that are reached from others. */
const MORE = { payments: { title: 'Payment', scope: 'audit:read', component: PaymentPage } };

/** @typedef {{ title: string, scope: string, component: (props: { place: import('./router.js').Place }) => unknown }} Page */

/** @type {ReadonlyMap<string, Page>} */
const ALL = new Map(Object.entries({ ...PAGES, ...MORE }));

/** The first page that the token can read. */
const firstPage = () =>
  Object.entries(PAGES).find(([, { scope }]) => hasScope(scope))?.[0] ?? 'live';

const useSession = () => {
  const [session, setSession] = useState(currentSession);
  useEffect(() => onSession(() => setSession(currentSession())), []);
  return session;
};

/**
 * Where a link leads, the keyboard and a screen reader go too: to the revision that it names, else to the
 * title of the page. A page that has taken the focus itself keeps it.
 */
const focusTitle = () => {
  const main = document.querySelector('main');
  /** @type {HTMLElement | null | undefined} */
  const title = main?.querySelector('[data-arrival]') ?? main?.querySelector('h1');
  const isTaken = main?.contains(document.activeElement) && !title?.matches('[data-arrival]');
  if (title == null || isTaken) return;
  title.tabIndex = -1;
  title.addEventListener('blur', () => title.removeAttribute('tabindex'), { once: true });
  title.focus();
};

/** @param {MouseEvent} event */
const skipHead = (event) => {
  event.preventDefault();
  focusTitle();
};

/** @param {{ current: string }} props */
const Navigation = ({ current }) => html`<nav aria-label="Pages">
  <ul>
    ${Object.entries(PAGES)
      .filter(([, { scope }]) => hasScope(scope))
      .map(
        ([name, { title }]) =>
          html`<li><a href=${`/console/${name}`} aria-current=${name === current ? 'page' : undefined}>${title}</a></li>`,
      )}
    <li><a href="/docs">API</a></li>
  </ul>
</nav>`;

const Reader = () => {
  const claims = currentSession()?.claims;
  if (claims === undefined) return null;
  const { actor, merchant, expiresAtMs } = claims;
  const until =
    expiresAtMs !== undefined &&
    html`, until <${Clock} at=${new Date(expiresAtMs).toISOString()} /> UTC`;
  return html`<p class="reader">${actor} · ${merchant === '*' ? 'all merchants' : (merchant ?? 'no merchant')}${until}
    <button type="button" onClick=${closeSession}>Forget the token</button></p>`;
};

const Console = () => {
  const place = usePlace();
  const session = useSession();
  const name = place.page === '' ? firstPage() : place.page;
  const page = ALL.get(name);
  useEffect(() => {
    const subject = place.id === undefined ? (page?.title ?? 'No such page') : place.id;
    document.title = `${subject} · Payments console`;
  }, [name, place.id]);
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) focusTitle();
    isFirst.current = false;
  }, [place.arrivals, session]);
  const content = () => {
    if (session === undefined) return html`<${SignIn} />`;
    if (page === undefined) return html`<h1>No such page</h1><p>The pages are above.</p>`;
    return html`<${page.component} key=${session.token} place=${place} />`;
  };
  return html`<a class="skip" href="#main" onClick=${skipHead}>To the content</a>
    <header>
      <a class="name" href="/console">Payments</a>
      ${session !== undefined && html`<${Navigation} current=${name === 'payments' ? 'find' : name} />`}
      <${Reader} />
    </header>
    <main id="main">${content()}</main>
    <footer><p>Every answer comes from the routes that <code>npx payments</code> uses. Reading is recorded.</p></footer>`;
};

startSession();
const root = document.querySelector('#console');
if (root !== null) render(html`<${Console} />`, root);
