/** Find: payments by id, merchant reference, last four digits, status, amount and time. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { ask } from '../api.js';
import { cardNumberIn, minorOf, numberOf, pathOf } from '../format.js';
import { EventMoney, FailedBox, formOf, html, PaymentLink, Status, Table, Time } from '../parts.js';
import { goTo } from '../router.js';
import { isOfAll } from '../session.js';
import { useNarrow } from '../windowed.js';

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
  const amounts = { minAmount: minorOf(minAmount), maxAmount: minorOf(maxAmount) };
  return { ...given, ...amounts, from: time(from), to: time(to) };
};

/** @param {URLSearchParams} query the last four digits of a card number in it, or nothing */
const cardOf = (query) =>
  cardNumberIn(`${query.get('q')} of ${query.get('merchant')}`)?.slice(-4) ?? '';

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

/** @param {{ results: Results, isFiltered: boolean, stop: () => void, more: () => void }} props */
const Progress = ({ results, isFiltered, stop, more }) => {
  const { payments, next, searchedTo, problem, isAsking } = results;
  if (problem !== undefined) return null;
  if (isAsking)
    return html`<p role="status">Searching … ${searchedTo && html`back to <${Time} at=${searchedTo} /> so far. <button type="button" onClick=${stop}>Stop</button>`}</p>`;
  if (next === null && payments.length > 0) return html`<p role="status">That is all of them.</p>`;
  if (next === null && isFiltered) return html`<p role="status">No payment matches.</p>`;
  if (next === null)
    return html`<p role="status">There is no payment yet. ${isOfAll() && html`<code>npx payments trigger full-story</code> makes one.`}</p>`;
  return html`<p role="status">Searched back to <${Time} at=${searchedTo ?? ''} />; older payments were not searched. <button type="button" onClick=${more}>Search on</button></p>`;
};

const COLUMNS = ['Payment', 'Status', 'Amount', 'Card', 'Reference', 'Merchant', 'Created'];

/** @param {{ payments: readonly Found[] }} props */
const FoundTable = ({ payments }) => {
  const caption = html`${numberOf(payments.length, 'payment')}, newest first. The arrow keys lead from the search through them, Enter opens one, <kbd>/</kbd> leads back.`;
  return html`<${Table} label="Payments found" columns=${COLUMNS} caption=${caption}>
        ${payments.map(
          (found) => html`<tr key=${found.paymentId}>
            <td><${PaymentLink} id=${found.paymentId} /></td>
            <td><${Status} status=${found.status} /></td>
            <td><${EventMoney} id=${found.paymentId} revision=${0} minor=${found.amount} currency=${found.currency} /></td>
            <td class="id last4">…${found.last4}</td>
            <td><span class="id">${found.merchantReference ?? ''}</span></td>
            <td class="id">${found.merchantId}</td>
            <td><${Time} at=${found.createdAt} /></td>
          </tr>`,
        )}<//>`;
};

const AMOUNT = '[0-9]{1,12}([.,][0-9]{1,2})?';

/** @param {{ query: URLSearchParams }} props */
const Filters = ({ query }) => {
  /** @param {string} name */
  const value = (name) => query.get(name) ?? '';
  /** @param {string} name */
  const timeValue = (name) => value(name).replace(/^[0-9-]{10}$/, '$&T00:00');
  const isNarrow = useNarrow();
  const isOpen = !isNarrow || NAMES.some((name) => name !== 'q' && value(name) !== '');
  return html`<details open=${isOpen}><summary>More filters</summary>
    <div class="line">
      <label>Status <select name="status">
        <option value="">any</option>
        ${STATUSES.map((one) => html`<option selected=${value('status') === one}>${one}</option>`)}
      </select></label>
      <label>At least <input name="minAmount" inputmode="decimal" pattern=${AMOUNT} placeholder="0.00" defaultValue=${value('minAmount')} /></label>
      <label>At most <input name="maxAmount" inputmode="decimal" pattern=${AMOUNT} placeholder="0.00" defaultValue=${value('maxAmount')} /></label>
      <label>Created from (UTC) <input name="from" type="datetime-local" step="1" defaultValue=${timeValue('from')} /></label>
      <label>Created before (UTC) <input name="to" type="datetime-local" step="1" defaultValue=${timeValue('to')} /></label>
      ${isOfAll() && html`<label>Merchant <input name="merchant" defaultValue=${value('merchant')} autocomplete="off" /></label>`}
    </div></details>`;
};

/** @param {string} selector */
const elementsOf = (selector) => [
  .../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(selector)),
];

/** @param {KeyboardEvent} event in the search or among the payments: leads to the one above or below */
const move = (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const target = /** @type {Element} */ (event.target);
  const stops = elementsOf('input[type=search], tbody a.id');
  const row = target.closest('tbody tr') ?? target;
  const at = stops.findIndex((stop) => row.contains(stop));
  if (step === undefined || at === -1) return;
  event.preventDefault();
  stops[at + step]?.focus();
};

/** @param {{ query: URLSearchParams }} props one search: another address is another one */
const Search = ({ query }) => {
  const [results, setResults] = useState({ ...NOTHING, isAsking: true });
  /** The last four digits of the card number that was typed. */
  const [refused, setRefused] = useState('');
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  /** Which reading is shown: an older one that goes on shows nothing more. */
  const round = useRef(0);
  /** The first of the payments that are to come, which then has the focus. */
  const awaited = useRef(Number.POSITIVE_INFINITY);

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
  const more = () => {
    if (results.isAsking) return;
    awaited.current = results.payments.length;
    start(results);
  };
  useEffect(() => {
    const first = elementsOf('tbody a.id')[awaited.current];
    if (first === undefined) return;
    first.focus();
    awaited.current = Number.POSITIVE_INFINITY;
  }, [results.payments]);
  useEffect(() => {
    field.current?.select();
    start(NOTHING);
    /** @param {KeyboardEvent} event */
    const toSearch = (event) => {
      if (event.key !== '/' || event.target instanceof HTMLInputElement) return;
      event.preventDefault();
      field.current?.select();
    };
    addEventListener('keydown', toSearch);
    return () => {
      round.current += 1;
      removeEventListener('keydown', toSearch);
    };
  }, []);

  /** @param {SubmitEvent} event */
  const submit = (event) => {
    const form = formOf(event);
    const given = NAMES.map((name) => [name, String(form.get(name) ?? '').trim()]);
    const query = new URLSearchParams(given);
    const card = cardOf(query);
    setRefused(card);
    if (card === '') goTo(pathOf('/console/find', Object.fromEntries(given)));
    else if (field.current !== null) field.current.value = card;
  };
  const isFiltered = NAMES.some((name) => (query.get(name) ?? '') !== '');
  return html`<h1>Find a payment</h1>
    <div onKeyDown=${move}>
      <form class="find" onSubmit=${submit} role="search">
        <label class="wide">Payment id, merchant reference or last four digits
          <input ref=${field} name="q" type="search" defaultValue=${query.get('q') ?? ''} maxlength="255" autocomplete="off" /></label>
        <button type="submit">Find</button>
        <${Filters} query=${query} />
      </form>
      ${refused !== '' && html`<p class="problem" role="alert">Only the last four digits are kept: search ${refused}.</p>`}
      ${isFiltered && html`<p><a href="/console/find">All payments</a></p>`}
      <${FailedBox} problem=${results.problem} />
      <${Progress} results=${results} isFiltered=${isFiltered} stop=${stop} more=${more} />
      ${results.payments.length > 0 && html`<${FoundTable} payments=${results.payments} />`}
      ${results.next !== null && html`<p><button type="button" onClick=${more} aria-disabled=${results.isAsking}>More</button></p>`}
    </div>`;
};

/** @param {{ place: import('../router.js').Place }} props */
export const FindPage = ({ place: { query } }) => {
  const card = cardOf(query);
  // An address that came with a card number keeps its last four digits, and only they are searched.
  useEffect(() => {
    if (card !== '') goTo(pathOf('/console/find', { q: card }), true);
  }, [card]);
  return card === '' && html`<${Search} key=${query.toString()} query=${query} />`;
};
