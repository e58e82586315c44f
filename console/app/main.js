/** The frame around every page, the page that the address names, and the sign-in. */
import { render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { WebhooksPage } from './endpoints.js';
import { FindPage } from './pages/find.js';
import { LivePage } from './pages/live.js';
import { MerchantPage } from './pages/merchant.js';
import { OperatePage } from './pages/operate.js';
import { PaymentPage } from './pages/payment.js';
import { VerifyPage } from './pages/verify.js';
import { formOf, html, Links, Time } from './parts.js';
import { usePlace } from './router.js';
import { closeSession, currentSession, hasScope, openSession, startSession } from './session.js';

const PAGES = {
  live: { title: 'Live', scope: 'audit:read', component: LivePage },
  find: { title: 'Find', scope: 'audit:read', component: FindPage },
  verify: { title: 'Verify', scope: 'audit:read', component: VerifyPage },
  operate: { title: 'Operate', scope: 'ops:admin', component: OperatePage },
  merchant: { title: 'My payments', scope: 'payments:read', component: MerchantPage },
  webhooks: { title: 'My webhooks', scope: 'payments:read', component: WebhooksPage },
};

const MORE = { payments: { title: 'Payment', scope: 'audit:read', component: PaymentPage } };

/** @typedef {{ title: string, scope: string, component: (props: { place: import('./router.js').Place }) => unknown }} Page */

/** @type {ReadonlyMap<string, Page>} */
const ALL = new Map(Object.entries({ ...PAGES, ...MORE }));

const offered = () => Object.entries(PAGES).filter(([, { scope }]) => hasScope(scope));

const firstPage = () => offered()[0]?.[0] ?? 'live';

const useSession = () => {
  const [session, setSession] = useState(currentSession);
  // The page is open as long as the window is, so it never stops listening.
  useEffect(() => addEventListener('session', () => setSession(currentSession())), []);
  return session;
};

/** A link leads keyboard and screen reader to its revision, else the title; a page that took focus keeps it. */
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

const SignIn = () => {
  const [wrong, setWrong] = useState(false);
  /** @param {SubmitEvent} event */
  const submit = (event) => {
    const form = formOf(event);
    setWrong(!openSession(String(form.get('token')), form.get('keep') === 'on'));
  };
  return html`<h1>Payments console</h1>
    <p>The history of every payment, from the events themselves. The console asks with your token, and shows what that token may see.</p>
    <form class="sign-in" onSubmit=${submit}>
      <label for="token">Token</label>
      <textarea id="token" name="token" rows="4" required autocomplete="off" spellcheck=${false} autofocus
        aria-describedby="how" aria-invalid=${wrong}></textarea>
      ${wrong && html`<p class="problem" role="alert">This text is no token. A token has three parts with dots between them.</p>`}
      <p><label><input type="checkbox" name="keep" /> Keep it in this tab, so that a reload does not ask again</label></p>
      <button type="submit">Open</button>
    </form>
    <div id="how">
      <h2>Where a token comes from</h2>
      <p>From a terminal, for an auditor, an operator or a merchant:</p>
      <pre tabindex="0">npx payments console                  # prints this page's address with a token in it
npx payments console --as merchant --merchant m_demo
npx payments token --merchant '*' --scope 'audit:read'</pre>
      <p>The token stays in the memory of this page. <a href="/docs">The API and its documents</a> need the same one.</p>
    </div>`;
};

/** @param {MouseEvent} event */
const skipHead = (event) => {
  event.preventDefault();
  focusTitle();
};

/** @param {{ current: string }} props */
const Navigation = ({ current }) => html`<nav aria-label="Pages">
  <ul>
    <${Links} root="/console" pages=${offered()} current=${current} />
    <li><a href="/docs">API</a></li>
  </ul>
</nav>`;

const Reader = () => {
  const claims = currentSession()?.claims;
  if (claims === undefined) return null;
  const { actor, merchant, expiresAtMs } = claims;
  const until =
    expiresAtMs !== undefined &&
    html`, until <${Time} at=${new Date(expiresAtMs).toISOString()} /> UTC`;
  const name = merchant === '*' ? 'all merchants' : (merchant ?? 'no merchant');
  return html`<p class="reader"><span>${actor === merchant ? '' : `${actor} · `}${name}${until}</span>
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
