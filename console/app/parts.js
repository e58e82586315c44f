/** The small parts that every page is made of. */
import htm from 'htm';
import { h } from 'preact';
import { localTime, money, paymentPage, utc } from './format.js';

/** @typedef {import('./api.js').Problem} Problem */

/** Templates as preact elements, without a build step. */
export const html = htm.bind(h);

/** @param {SubmitEvent} event of a form that the page itself sends */
export const formOf = (event) => {
  event.preventDefault();
  return new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
};

/** @param {{ at: string }} props */
export const Time = ({ at }) => html`<time datetime=${at} title=${localTime(at)}>${utc(at)}</time>`;

/** @param {{ at: string }} props */
export const Clock = ({ at }) =>
  html`<time datetime=${at} title=${`${utc(at)} UTC, ${localTime(at)}`}>${utc(at).slice(11)}</time>`;

/** @param {{ name: string }} props a name that breaks, where it must, between its parts */
export const Name = ({ name }) =>
  name
    .split(/(?<=[a-z])(?=[A-Z])|(?<=[._/])/)
    .map((part, at) => html`${at > 0 && html`<wbr />`}${part}`);

/** @param {{ minor: number, currency: string }} props */
export const Money = ({ minor, currency }) =>
  html`<span class="money" title=${`${minor} minor units`}>${money(minor, currency)}</span>`;

/** Colour is never the only sign. */
const SIGNS = new Map([
  ['PENDING', '…'],
  ['AUTHORIZED', '◐'],
  ['CAPTURED', '●'],
  ['REFUNDED', '↩'],
  ['VOIDED', '○'],
  ['FAILED', '✕'],
]);

/** @param {{ status: string }} props */
export const Status = ({ status }) =>
  html`<span class=${`status ${status.toLowerCase()}`}><span aria-hidden="true">${SIGNS.get(status) ?? '·'}</span> ${status}</span>`;

/** The cardholder has the money back until the dispute is decided. */
export const Disputed = () =>
  html`<span class="status failed"><span aria-hidden="true">!</span> disputed</span>`;

/** @param {{ isGood: boolean, children?: unknown }} props */
export const Finding = ({ isGood, children }) =>
  html`<p class=${isGood ? 'finding good' : 'finding bad'} role="status"><span aria-hidden="true">${isGood ? '✓' : '✕'}</span> ${children}</p>`;

/** @param {{ problem: Problem | undefined, again?: () => void }} props */
export const FailedBox = ({ problem, again }) =>
  problem === undefined
    ? null
    : html`<div class="problem" role="alert">
        <p><strong>${problem.sentence}</strong> <code>${problem.code}</code></p>
        ${problem.details.map((detail) => html`<p>${detail}</p>`)}
        <p>${problem.next}</p>
        ${again && html`<button type="button" onClick=${again}>Try again</button>`}
      </div>`;

/** @typedef {{ position: string, stream: string, revision: number, reason: string }} Broken */

const PAYMENT_STREAM = /^payment-(.+)$/;

/**
 * Where a break is, and why it is one. It leads to the event, unless the reader is there.
 * @param {{ broken: Broken }} props
 */
export const BrokenPlace = ({ broken: { position, stream, revision, reason } }) => {
  const id = PAYMENT_STREAM.exec(stream)?.[1];
  const place = `${position === '' ? '' : `#${position}, `}revision ${revision} of ${id ?? stream}`;
  const href = id && paymentPage(id, position === '' ? undefined : revision);
  const isLink = href !== undefined && href !== location.pathname + location.search;
  return html`${isLink ? html`<a href=${href}>${place}</a>` : place}: ${reason}`;
};

/** @param {string} reason of a break */
export const isUnreadable = (reason) => reason.startsWith('it cannot be read');

/** @param {{ broken: Broken | undefined }} props */
export const BrokenBox = ({ broken }) =>
  broken === undefined
    ? null
    : html`<div class="broken" role="alert">
        <strong>✕ ${isUnreadable(broken.reason) ? 'Cannot be read.' : 'Changed after it was stored.'}</strong> <${BrokenPlace} broken=${broken} />. Nothing from there on is proven.
      </div>`;

/**
 * The loaded value, below a problem; until there is a first one, that it is read.
 * @param {{ loaded: import('./api.js').Loaded<unknown>, what: string, children?: any }} props `children` is made of the value
 */
export const Shown = ({ loaded: { value, problem, again }, what, children }) => {
  const wait =
    problem === undefined && html`<p class="waiting" role="status">Reading ${what} …</p>`;
  return html`<${FailedBox} problem=${problem} again=${again} />${value === undefined ? wait : children(value)}`;
};

/** @param {{ id: string, revision?: number }} props */
export const PaymentLink = ({ id, revision }) =>
  html`<a class="id" href=${paymentPage(id, revision)}>${id}</a>`;

/** @param {{ id: string, revision: number, minor: number, currency: string }} props leads to the event that made the amount */
export const EventMoney = ({ id, revision, minor, currency }) =>
  html`<a href=${paymentPage(id, revision)}><${Money} minor=${minor} currency=${currency} /></a>`;

/** @param {{ value: unknown, name?: string, id?: string }} props a link to `id` opens it */
export const Raw = ({ value, name = 'Raw JSON', id }) =>
  html`<details class="raw"><summary>${name}</summary><pre id=${id} tabindex="0">${JSON.stringify(value, null, 2)}</pre></details>`;

/** @param {{ name: string, href?: string, isBad?: boolean, children?: unknown }} props `href` leads to what made the figure */
export const Fact = ({ name, href, isBad = false, children }) =>
  html`<div class=${isBad ? 'figure bad' : 'figure'}>
    <dt>${name}</dt>
    <dd>${isBad && html`<span aria-hidden="true">! </span>`}${href === undefined ? children : html`<a href=${href}>${children}</a>`}</dd>
  </div>`;

/** @param {{ id: string, revision: number }} props */
export const RevisionLink = ({ id, revision }) =>
  html`<a href=${paymentPage(id, revision)} aria-label=${`${id} at revision ${revision}`}>${revision}</a>`;

/** @param {{ label: string, columns: readonly unknown[], caption?: unknown, children?: unknown }} props `children` are its rows */
export const Table = ({ label, columns, caption, children }) =>
  html`<div class="scrolls" tabindex="0" role="region" aria-label=${label}><table>
    ${caption && html`<caption>${caption}</caption>`}
    <thead><tr>${columns.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
    <tbody>${children}</tbody>
  </table></div>`;

/** @param {{ root: string, pages: readonly [string, { title: string }][], current: string }} props */
export const Links = ({ root, pages, current }) =>
  pages.map(([name, { title }]) => {
    const isCurrent = name === current ? 'page' : undefined;
    return html`<li><a href=${`${root}/${name}`} aria-current=${isCurrent}>${title}</a></li>`;
  });
