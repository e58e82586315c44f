/** Find: payments by id, merchant reference, last four digits, status, amount and time. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { ask } from '../api.js';
import { minorOf, pathOf } from '../format.js';
import { html } from '../html.js';
import { Money, PaymentLink, ProblemBox, Status, Time } from '../parts.js';
import { goTo } from '../router.js';
import { isOfAll } from '../session.js';

/** @typedef {import('../../../audit/contract.ts').AuditFound} Found */
/** @typedef {import('../api.js').Problem} Problem */
/** @typedef {{ payments: readonly Found[], next: string | null, problem: Problem | undefined, isAsking: boolean }} Results */

const STATUSES = ['PENDING', 'AUTHORIZED', 'CAPTURED', 'REFUNDED', 'VOIDED', 'FAILED'];
const NAMES = ['q', 'status', 'minAmount', 'maxAmount', 'from', 'to', 'merchant'];
/** Pages without a payment that are skipped before the reader has to ask for more. */
const EMPTY_PAGES_MAX = 20;

/** @type {Results} */
const NOTHING = { payments: [], next: null, problem: undefined, isAsking: false };

/**
 * The parameters of the route for what the form says.
 * @param {URLSearchParams} query
 */
const parametersOf = (query) => {
  const given = Object.fromEntries(NAMES.map((name) => [name, query.get(name) ?? '']));
  const { minAmount = '', maxAmount = '', from = '', to = '' } = given;
  /** @param {string} text */
  const day = (text) => (text === '' ? '' : `${text}T00:00:00.000Z`);
  return {
    ...given,
    minAmount: minorOf(minAmount),
    maxAmount: minorOf(maxAmount),
    from: day(from),
    to: day(to),
  };
};

/**
 * Reads pages until one has a payment, the end is reached or `EMPTY_PAGES_MAX` were empty.
 * @param {URLSearchParams} query
 * @param {string | undefined} cursor
 * @returns {Promise<Results>}
 */
const readPage = async (query, cursor) => {
  let next = cursor;
  for (let pages = 0; pages < EMPTY_PAGES_MAX; pages += 1) {
    const path = pathOf('/audit/v1/payments', { ...parametersOf(query), cursor: next, limit: 50 });
    /** @type {import('../api.js').Outcome<{ payments: Found[], next: string | null }>} */
    const outcome = await ask(path);
    if (!outcome.ok) return { ...NOTHING, problem: outcome.problem };
    const { payments, next: following } = outcome.value;
    if (payments.length > 0 || following === null) return { ...NOTHING, payments, next: following };
    next = following;
  }
  return { ...NOTHING, next: next ?? null };
};

/** @param {{ results: Results, more: () => void }} props */
const Table = ({ results, more }) => {
  const body = useRef(/** @type {HTMLElement | null} */ (null));
  /** @param {KeyboardEvent} event */
  const move = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const links = [...(body.current?.querySelectorAll('a') ?? [])];
    const at = links.indexOf(/** @type {HTMLAnchorElement} */ (document.activeElement));
    links[Math.max(0, Math.min(links.length - 1, at + step))]?.focus();
  };
  return html`<div class="scrolls" tabindex="0" role="region" aria-label="Payments found"><table>
      <caption>${results.payments.length} payments, newest first. Arrow keys go through them.</caption>
      <thead><tr><th scope="col">Payment</th><th scope="col">Status</th><th scope="col">Amount</th><th scope="col">Card</th><th scope="col">Reference</th><th scope="col">Merchant</th><th scope="col">Created</th></tr></thead>
      <tbody ref=${body} onKeyDown=${move}>
        ${results.payments.map(
          (found) => html`<tr key=${found.paymentId}>
            <td><${PaymentLink} id=${found.paymentId} /></td>
            <td><${Status} status=${found.status} /></td>
            <td><${Money} minor=${found.amount} currency=${found.currency} /></td>
            <td>…${found.last4}</td>
            <td>${found.merchantReference ?? ''}</td>
            <td>${found.merchantId}</td>
            <td><${Time} at=${found.createdAt} /></td>
          </tr>`,
        )}
      </tbody>
    </table></div>
    ${results.next !== null && html`<p><button type="button" onClick=${more} disabled=${results.isAsking}>More</button></p>`}`;
};

/** @param {{ place: import('../router.js').Place }} props */
export const FindPage = ({ place }) => {
  const { query } = place;
  const address = query.toString();
  const [results, setResults] = useState(NOTHING);
  const first = useRef(/** @type {HTMLInputElement | null} */ (null));

  useEffect(() => {
    let isCurrent = true;
    setResults({ ...NOTHING, isAsking: true });
    readPage(query, undefined).then((page) => isCurrent && setResults(page));
    return () => {
      isCurrent = false;
    };
  }, [address]);
  useEffect(() => {
    first.current?.focus();
    /** @param {KeyboardEvent} event */
    const toSearch = (event) => {
      if (event.key !== '/' || event.target instanceof HTMLInputElement) return;
      event.preventDefault();
      first.current?.focus();
    };
    addEventListener('keydown', toSearch);
    return () => removeEventListener('keydown', toSearch);
  }, []);

  const more = async () => {
    setResults({ ...results, isAsking: true });
    const page = await readPage(query, results.next ?? undefined);
    setResults({ ...page, payments: [...results.payments, ...page.payments] });
  };
  /** @param {SubmitEvent} event */
  const submit = (event) => {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    const given = Object.fromEntries(
      NAMES.map((name) => [name, String(form.get(name) ?? '').trim()]),
    );
    goTo(pathOf('/console/find', given));
  };
  /** @param {string} name */
  const value = (name) => query.get(name) ?? '';
  return html`<h1>Find a payment</h1>
    <form class="find" onSubmit=${submit} role="search">
      <label class="wide">Payment id, merchant reference or last four digits
        <input ref=${first} name="q" type="search" defaultValue=${value('q')} maxlength="255" autocomplete="off" /></label>
      <label>Status <select name="status">
        <option value="">any</option>
        ${STATUSES.map((one) => html`<option selected=${value('status') === one}>${one}</option>`)}
      </select></label>
      <label>At least <input name="minAmount" inputmode="decimal" pattern="[0-9]{1,12}([.,][0-9]{1,2})?" placeholder="0.00" defaultValue=${value('minAmount')} /></label>
      <label>At most <input name="maxAmount" inputmode="decimal" pattern="[0-9]{1,12}([.,][0-9]{1,2})?" placeholder="0.00" defaultValue=${value('maxAmount')} /></label>
      <label>Created from (UTC) <input name="from" type="date" defaultValue=${value('from')} /></label>
      <label>Created before (UTC) <input name="to" type="date" defaultValue=${value('to')} /></label>
      ${isOfAll() && html`<label>Merchant <input name="merchant" defaultValue=${value('merchant')} autocomplete="off" /></label>`}
      <button type="submit">Find</button>
    </form>
    <p class="hint">Key <kbd>/</kbd> leads back to the search. <a href="/console/find">All payments</a></p>
    <${ProblemBox} problem=${results.problem} />
    ${results.isAsking && results.payments.length === 0 ? html`<p role="status">Searching …</p>` : html`<${Table} results=${results} more=${more} />`}`;
};
