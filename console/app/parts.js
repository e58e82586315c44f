/** The small parts that every page is made of. */
import { brokenPlace, localTime, money, pathOf, utc } from './format.js';
import { html } from './html.js';

/** @typedef {import('./api.js').Problem} Problem */

/**
 * A time in UTC, with the reader's own on hover.
 * @param {{ at: string }} props
 */
export const Time = ({ at }) => html`<time datetime=${at} title=${localTime(at)}>${utc(at)}</time>`;

/**
 * The time of day in UTC, with the day and the reader's own time on hover.
 * @param {{ at: string }} props
 */
export const Clock = ({ at }) =>
  html`<time datetime=${at} title=${`${utc(at)} UTC, ${localTime(at)}`}>${utc(at).slice(11)}</time>`;

/**
 * An amount in major units; minor units stand in the raw form.
 * @param {{ minor: number, currency: string }} props
 */
export const Money = ({ minor, currency }) =>
  html`<span class="money" title=${`${minor} minor units`}>${money(minor, currency)}</span>`;

/** A sign beside each colour, which is never the only one. */
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

/** What a status does not say: the cardholder has the money back until somebody decides. */
export const Disputed = () =>
  html`<span class="status failed"><span aria-hidden="true">!</span> disputed</span>`;

/**
 * Good or bad, in words and with a sign.
 * @param {{ isGood: boolean, children?: unknown }} props
 */
export const Finding = ({ isGood, children }) =>
  html`<p class=${isGood ? 'finding good' : 'finding bad'} role="status"><span aria-hidden="true">${isGood ? '✓' : '✕'}</span> ${children}</p>`;

/**
 * What went wrong, and what the reader can do.
 * @param {{ problem: Problem | undefined, again?: () => void }} props
 */
export const ProblemBox = ({ problem, again }) =>
  problem === undefined
    ? null
    : html`<div class="problem" role="alert">
        <p><strong>${problem.sentence}</strong> <code>${problem.code}</code></p>
        ${problem.details.map((detail) => html`<p>${detail}</p>`)}
        <p>${problem.next}</p>
        ${again && html`<button type="button" onClick=${again}>Try again</button>`}
      </div>`;

/**
 * The first event that does not verify, marked beyond mistaking.
 * @param {{ broken: { position: string, stream: string, revision: number, reason: string } | undefined }} props
 */
export const BrokenBox = ({ broken }) =>
  broken === undefined
    ? null
    : html`<div class="broken" role="alert">
        <strong>✕ Changed after it was stored.</strong> ${brokenPlace(broken)}. Nothing from there on is proven.
        <${StreamLink} place=${broken} />
      </div>`;

const PAYMENT_STREAM = /^payment-(.+)$/;

/**
 * The payment that a place in the log belongs to; nothing for the stream of something else.
 * @param {{ place: { stream: string, revision: number } }} props
 */
export const StreamLink = ({ place: { stream, revision } }) => {
  const id = PAYMENT_STREAM.exec(stream)?.[1];
  return id === undefined ? null : html` <${PaymentLink} id=${id} revision=${revision} />`;
};

/**
 * Until the first response is there.
 * @param {{ what: string }} props
 */
export const Waiting = ({ what }) => html`<p class="waiting" role="status">Reading ${what} …</p>`;

/**
 * A payment's id as the way to its page.
 * @param {{ id: string, revision?: number }} props
 */
export const PaymentLink = ({ id, revision }) =>
  html`<a class="id" href=${`/console/payments/${encodeURIComponent(id)}${revision === undefined ? '' : `?revision=${revision}`}`}>${id}</a>`;

/**
 * An amount that leads to the event that made it.
 * @param {{ id: string, revision: number, minor: number, currency: string }} props
 */
export const EventMoney = ({ id, revision, minor, currency }) =>
  html`<a href=${pathOf(`/console/payments/${encodeURIComponent(id)}`, { revision })}><${Money} minor=${minor} currency=${currency} /></a>`;

/**
 * A value as JSON, as the route gave it; a link to `id` opens it.
 * @param {{ value: unknown, name?: string, id?: string }} props
 */
export const Raw = ({ value, name = 'Raw JSON', id }) =>
  html`<details class="raw"><summary>${name}</summary><pre id=${id} tabindex="0">${JSON.stringify(value, null, 2)}</pre></details>`;

/**
 * A figure with its name, leading to what it was made from.
 * @param {{ name: string, href?: string, isBad?: boolean, children?: unknown }} props
 */
export const Fact = ({ name, href, isBad = false, children }) =>
  html`<div class=${isBad ? 'figure bad' : 'figure'}>
    <dt>${name}</dt>
    <dd>${isBad && html`<span aria-hidden="true">! </span>`}${href === undefined ? children : html`<a href=${href}>${children}</a>`}</dd>
  </div>`;
