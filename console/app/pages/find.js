/** Find: payments by id, merchant reference, last four digits, status, amount and time. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { ask } from '../api.js';
import { minorOf, pathOf } from '../format.js';
import { EventMoney, html, PaymentLink, ProblemBox, Status, Table, Time } from '../parts.js';
import { goTo } from '../router.js';
import { isOfAll } from '../session.js';

/** @typedef {import('../../../audit/contract.ts').AuditFound} Found */
/** @typedef {import('../api.js').Problem} Problem */
/** @typedef {{ payments: readonly Found[], next: string | null, searchedTo?: string | undefined, problem?: Problem | undefined, isAsking: boolean }} Results */
/** @typedef {{ payments: Found[], next: string | null, searchedTo?: string }} Page */

const STATUSES = ['PENDING', 'AUTHORIZED', 'CAPTURED', 'REFUNDED', 'VOIDED', 'FAILED'];
const NAMES = ['q', 'status', 'minAmount', 'maxAmount', 'from', 'to', 'merchant'];
/** How many payments more are shown before the reader has to ask for others. */
const SHOWN_AT_ONCE = 50;

/** @type {Results} */
const NOTHING = { payments: [], next: null, isAsking: false };

/** @param {URLSearchParams} query of the form */
const parametersOf = (query) => {
  const given = Object.fromEntries(NAMES.map((name) => [name, query.get(name) ?? '']));
  const { minAmount = '', maxAmount = '', from = '', to = '' } = given;
  /** @param {string} text a day, or a day and a time, in UTC */
  const time = (text) => (text === '' ? '' : `${text}${'T00:00:00'.slice(text.length - 10)}Z`);
  return {
    ...given,
    minAmount: minorOf(minAmount),
    maxAmount: minorOf(maxAmount),
    from: time(from),
    to: time(to),
  };
};

/**
 * Reads page after page until enough payments more were found or all were searched, because one request looks
 * at a bounded number of payments. `show` is false once another search is shown.
 * @type {(query: URLSearchParams, known: Results, show: (results: Results) => boolean) => Promise<void>}
 */
const search = async (query, known, show) => {
  const enough = known.payments.length + SHOWN_AT_ONCE;
  let results = { ...known, problem: undefined, isAsking: true };
  if (!show(results)) return;
  while (results.isAsking) {
    const cursor = results.next ?? undefined;
    const limit = SHOWN_AT_ONCE;
    const path = pathOf('/audit/v1/payments', { ...parametersOf(query), cursor, limit });
    /** @type {import('../api.js').Outcome<Page>} */
    const outcome = await ask(path);
    if (!outcome.ok) return void show({ ...results, problem: outcome.problem, isAsking: false });
    const { next, searchedTo } = outcome.value;
    const payments = [...results.payments, ...outcome.value.payments];
    const isAsking = next !== null && payments.length < enough;
    results = { ...results, payments, next, searchedTo, isAsking };
    if (!show(results)) return;
  }
};

/** @param {{ isFiltered: boolean }} props */
const Nothing = ({ isFiltered }) =>
  isFiltered
    ? html`<p role="status">No payment matches.</p>`
    : html`<p role="status">There is no payment yet. ${isOfAll() && html`<code>npx payments trigger full-story</code> makes one.`}</p>`;

/** @param {{ results: Results, isFiltered: boolean, stop: () => void }} props */
const Progress = ({ results, isFiltered, stop }) => {
  const { payments, next, searchedTo, problem, isAsking } = results;
  if (problem !== undefined) return null;
  if (isAsking)
    return html`<p role="status">Searching … ${searchedTo && html`up to <${Time} at=${searchedTo} /> so far. <button type="button" onClick=${stop}>Stop</button>`}</p>`;
  if (next === null && payments.length === 0) return html`<${Nothing} isFiltered=${isFiltered} />`;
  if (next === null) return html`<p role="status">That is all of them.</p>`;
  return html`<p role="status">Searched up to <${Time} at=${searchedTo ?? ''} />; older payments were not searched.</p>`;
};

const COLUMNS = ['Payment', 'Status', 'Amount', 'Card', 'Reference', 'Merchant', 'Created'];

/** @param {{ results: Results, more: () => void }} props */
const Found = ({ results, more }) => {
  const body = useRef(/** @type {HTMLElement | null} */ (null));
  /** @returns {HTMLElement[]} */
  const linksOf = () =>
    [...(body.current?.querySelectorAll('a.id') ?? [])].map(
      (link) => /** @type {HTMLElement} */ (link),
    );
  /** The first of the payments that *More* is to bring, which then has the focus. */
  const awaited = useRef(Number.POSITIVE_INFINITY);
  useEffect(() => {
    if (results.payments.length <= awaited.current) return;
    linksOf()[awaited.current]?.focus();
    awaited.current = Number.POSITIVE_INFINITY;
  }, [results.payments]);
  const askMore = () => {
    if (results.isAsking) return;
    awaited.current = results.payments.length;
    more();
  };
  /** @param {KeyboardEvent} event */
  const move = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const links = linksOf();
    const row = document.activeElement?.closest('tr');
    const at = links.findIndex((link) => link.closest('tr') === row);
    links[Math.max(0, Math.min(links.length - 1, at + step))]?.focus();
  };
  const caption = `${results.payments.length} payments, newest first. Arrow keys go through them.`;
  return html`<${Table} label="Payments found" columns=${COLUMNS} caption=${caption}>
      <tbody ref=${body} onKeyDown=${move}>
        ${results.payments.map(
          (found) => html`<tr key=${found.paymentId}>
            <td><${PaymentLink} id=${found.paymentId} /></td>
            <td><${Status} status=${found.status} /></td>
            <td><${EventMoney} id=${found.paymentId} revision=${0} minor=${found.amount} currency=${found.currency} /></td>
            <td class="id">…${found.last4}</td>
            <td><span class="id">${found.merchantReference ?? ''}</span></td>
            <td class="id">${found.merchantId}</td>
            <td><${Time} at=${found.createdAt} /></td>
          </tr>`,
        )}
      </tbody><//>
    ${results.next !== null && html`<p><button type="button" onClick=${askMore} aria-disabled=${results.isAsking}>More</button></p>`}`;
};

/** @param {{ place: import('../router.js').Place }} props */
export const FindPage = ({ place }) => {
  const { query } = place;
  const address = query.toString();
  const [results, setResults] = useState({ ...NOTHING, isAsking: true });
  const first = useRef(/** @type {HTMLInputElement | null} */ (null));
  /** Which search is shown: an older one that goes on shows nothing more. */
  const round = useRef(0);

  /** @param {Results} known */
  const start = (known) => {
    const own = ++round.current;
    search(query, known, (found) => {
      const isCurrent = own === round.current;
      if (isCurrent) setResults(found);
      return isCurrent;
    });
  };
  const stop = () => {
    round.current += 1;
    setResults((before) => ({ ...before, isAsking: false }));
  };
  useEffect(() => {
    start(NOTHING);
    return () => {
      round.current += 1;
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
  /** @param {string} name */
  const timeValue = (name) => value(name).replace(/^[0-9-]{10}$/, '$&T00:00');
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
      <label>Created from (UTC) <input name="from" type="datetime-local" step="1" defaultValue=${timeValue('from')} /></label>
      <label>Created before (UTC) <input name="to" type="datetime-local" step="1" defaultValue=${timeValue('to')} /></label>
      ${isOfAll() && html`<label>Merchant <input name="merchant" defaultValue=${value('merchant')} autocomplete="off" /></label>`}
      <button type="submit">Find</button>
    </form>
    <p class="hint">Key <kbd>/</kbd> leads back to the search. <a href="/console/find">All payments</a></p>
    <${ProblemBox} problem=${results.problem} />
    <${Progress} results=${results} isFiltered=${NAMES.some((name) => value(name) !== '')} stop=${stop} />
    ${(results.payments.length > 0 || results.next !== null) && html`<${Found} results=${results} more=${() => start(results)} />`}`;
};
