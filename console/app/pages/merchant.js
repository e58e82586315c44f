/** My payments: what a merchant's own token may see, without audit rights. */
import { useState } from 'preact/hooks';
import { ask, useAsk, useAttempt } from '../api.js';
import { duration, pathOf } from '../format.js';
import { Disputed, Fact, html, Money, Raw, Shown, Status, Table, Time } from '../parts.js';

/** @typedef {import('../../../shared/payment/fields.ts').PaymentResponse} Payment */

const LIST_MS = 2_000;
const PAGE = 20;

/** @param {{ payment: Payment }} props */
const Story = ({ payment }) => {
  const { currency, transactions, createdAt } = payment;
  /** @param {number} at */
  const before = (at) => transactions[at - 1]?.createdAt ?? createdAt;
  /** @type {(one: Payment['transactions'][number], at: number) => unknown} */
  const row = ({ type, amount, result, failure, createdAt: time, id }, at) => html`
    <li key=${id} id=${id} tabindex="-1" class=${result === 'FAILED' ? 'failed' : ''}>
      <${Time} at=${time} /> <small>+${duration(Date.parse(time) - Date.parse(before(at)))}</small>
      <strong> ${type}</strong> <${Money} minor=${amount} currency=${currency} />
      ${result === 'SUCCEEDED' ? ' ✓ succeeded' : ` ✕ declined: ${failure?.failureCode}`} ${failure?.providerFailureCode && html`<code>${failure.providerFailureCode}</code>`} ${failure && html`<small>advice: ${failure.advice.toLowerCase().replaceAll('_', ' ')}</small>`}
    </li>`;
  return html`<ol class="attempts">
    <li id="created" tabindex="-1"><${Time} at=${createdAt} /> created</li>
    ${transactions.map(row)}
  </ol>`;
};

const DISPUTES = {
  OPEN: '! open: nothing is refunded meanwhile',
  WON: '✓ won: the money stays',
  LOST: '✕ lost: the money is gone',
};

/** @param {{ payment: Payment }} props */
const Disputes = ({ payment: { disputes = [], currency } }) => {
  /** @param {(typeof disputes)[number]} one */
  const row = ({ id, amount, reason, status, createdAt }) => html`
    <li key=${id} class=${status === 'WON' ? '' : 'failed'}>
      <${Time} at=${createdAt} /> <strong class="id">${id}</strong> <${Money} minor=${amount} currency=${currency} /> ${reason}, ${DISPUTES[status]}</li>`;
  return (
    disputes.length > 0 && html`<h2>Disputes</h2><ul class="attempts">${disputes.map(row)}</ul>`
  );
};

/** @param {{ payment: Payment }} props */
const Metadata = ({ payment: { metadata } }) =>
  metadata === undefined
    ? null
    : html`<h2>Metadata</h2><ul>
        ${Object.entries(metadata).map(([name, value]) => html`<li key=${name}>${name}: <code>${value}</code></li>`)}
      </ul>`;

const CAPTURES = ['SALE', 'CAPTURE'];
const REFUNDS = ['REFUND'];
const MOVES = [...CAPTURES, ...REFUNDS];

/** @type {(payment: Payment, types: readonly string[]) => string} leads to the last success of these types, else to the start */
const madeBy = ({ transactions }, types) => {
  const last = transactions.findLast(
    ({ type, result }) => result === 'SUCCEEDED' && types.includes(type),
  );
  return `#${last?.id ?? 'created'}`;
};

/** @param {{ id: string }} props */
const OnePayment = ({ id }) => {
  const loaded = useAsk(`/api/v1/payments/${encodeURIComponent(id)}`, LIST_MS);
  /** @param {Payment} payment */
  const shown = (payment) => {
    const { status, transactions, currency } = payment;
    /** @type {(name: string, minor: number, href: string) => unknown} */
    const sum = (name, minor, href) =>
      html`<${Fact} name=${name} href=${href}><${Money} minor=${minor} currency=${currency} /><//>`;
    return html`<dl class="figures">
        <${Fact} name="Status" href=${`#${transactions.at(-1)?.id ?? 'created'}`}><${Status} status=${status} /><//>
        ${sum('Amount', payment.amount, '#created')}
        ${sum('Captured', payment.capturedAmount, madeBy(payment, CAPTURES))}
        ${sum('Refunded', payment.refundedAmount, madeBy(payment, REFUNDS))}
        ${sum('Can be refunded', payment.refundableAmount, madeBy(payment, MOVES))}
      </dl>
      <h2 id="happened">What happened</h2><${Story} payment=${payment} /><${Disputes} payment=${payment} /><${Metadata} payment=${payment} /><${Raw} value=${payment} />`;
  };
  return html`<p><a href="/console/merchant">All my payments</a></p>
    <h1>Payment <span class="id">${id}</span></h1>
    <${Shown} loaded=${loaded} what="the payment">${shown}<//>`;
};

const COLUMNS = ['Payment', 'Status', 'Amount', 'Reference', 'Attempts', 'Created'];
const CAPTION = 'Newest first. The first page is read again every two seconds.';

/** @param {{ payment: Payment }} props */
const Row = ({ payment }) => {
  const { paymentId, status, disputes, amount, currency, transactions } = payment;
  const href = `/console/merchant/${encodeURIComponent(paymentId)}`;
  return html`<tr>
    <td><a class="id" href=${href}>${paymentId}</a></td>
    <td><${Status} status=${status} /> ${disputes?.some((one) => one.status === 'OPEN') && html`<${Disputed} />`}</td>
    <td><a href=${href}><${Money} minor=${amount} currency=${currency} /></a></td>
    <td><span class="id">${payment.merchantReference ?? ''}</span></td>
    <td>${transactions.map(({ type }) => type).join(', ')}</td>
    <td><${Time} at=${payment.createdAt} /></td>
  </tr>`;
};

/** @typedef {{ payments: Payment[], nextCursor?: string }} Page */

const AllPayments = () => {
  /** @type {import('../api.js').Loaded<Page>} */
  const first = useAsk(pathOf('/api/v1/payments', { limit: PAGE }), LIST_MS);
  const page = first.value;
  const [rest, setRest] = useState(/** @type {readonly Page[]} */ ([]));
  const { problem, attempt } = useAttempt();
  const cursor = (rest.at(-1) ?? page)?.nextCursor;
  const more = async () => {
    /** @type {Page | undefined} */
    const next = await attempt(ask(pathOf('/api/v1/payments', { limit: PAGE, cursor })));
    if (next !== undefined) setRest([...rest, next]);
  };
  const older = rest.flatMap(({ payments }) => payments);
  const newest = page?.payments ?? [];
  const shown = [
    ...newest,
    ...older.filter(({ paymentId }) => !newest.some((one) => one.paymentId === paymentId)),
  ];
  const isEmpty = shown.length === 0 && page?.nextCursor === undefined;
  const list = () => html`
    ${isEmpty && html`<p role="status">There is no payment yet. One appears here by itself when <a href="/docs">the API</a> has made it.</p>`}
    ${
      shown.length > 0 &&
      html`<${Table} label="My payments" columns=${COLUMNS} caption=${CAPTION}>
      ${shown.map((payment) => html`<${Row} key=${payment.paymentId} payment=${payment} />`)}<//>`
    }`;
  const loaded = { ...first, problem: first.problem ?? problem };
  return html`<h1>My payments</h1>
    <${Shown} loaded=${loaded} what="payments">${list}<//>
    ${cursor !== undefined && html`<p><button type="button" onClick=${more}>More</button></p>`}`;
};

/** @param {{ place: import('../router.js').Place }} props */
export const MerchantPage = ({ place: { id } }) =>
  id === undefined ? html`<${AllPayments} />` : html`<${OnePayment} key=${id} id=${id} />`;
