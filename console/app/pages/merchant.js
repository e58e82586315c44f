/** My payments: what a merchant's own token may see, without audit rights. */
import { useEffect, useState } from 'preact/hooks';
import { ask, useAsk } from '../api.js';
import { duration, pathOf } from '../format.js';
import {
  Disputed,
  Fact,
  html,
  Money,
  ProblemBox,
  Raw,
  Status,
  Table,
  Time,
  Waiting,
} from '../parts.js';

/** @typedef {import('../../../shared/payment/payment-response.ts').PaymentResponse} Payment */
/** @typedef {import('../api.js').Problem} Problem */

const LIST_MS = 2_000;
const PAGE = 20;

/** @param {{ payment: Payment }} props */
const Story = ({ payment }) => {
  const { currency, transactions, createdAt } = payment;
  /** @param {number} at */
  const before = (at) => transactions[at - 1]?.createdAt ?? createdAt;
  return html`<ol class="attempts">
    <li id="created" tabindex="-1"><${Time} at=${createdAt} /> created</li>
    ${transactions.map(
      (
        { type, amount, result, failure, createdAt: time, id },
        at,
      ) => html`<li key=${id} id=${id} tabindex="-1" class=${result === 'FAILED' ? 'failed' : ''}>
        <${Time} at=${time} /> <small>+${duration(Date.parse(time) - Date.parse(before(at)))}</small>
        <strong> ${type}</strong> <${Money} minor=${amount} currency=${currency} />
        ${result === 'SUCCEEDED' ? ' ✓ succeeded' : ` ✕ declined: ${failure?.failureCode}`} ${failure?.providerFailureCode && html`<code>${failure.providerFailureCode}</code>`} ${failure && html`<small>advice: ${failure.advice.toLowerCase().replaceAll('_', ' ')}</small>`}
      </li>`,
    )}
  </ol>`;
};

const DISPUTES = {
  OPEN: '! open: nothing is refunded meanwhile',
  WON: '✓ won: the money stays',
  LOST: '✕ lost: the money is gone',
};

/** @param {{ payment: Payment }} props */
const Disputes = ({ payment: { disputes = [], currency } }) =>
  disputes.length === 0
    ? null
    : html`<h2>Disputes</h2><ul class="attempts">
        ${disputes.map(
          ({
            id,
            amount,
            reason,
            status,
            createdAt,
          }) => html`<li key=${id} class=${status === 'WON' ? '' : 'failed'}>
            <${Time} at=${createdAt} /> <strong class="id">${id}</strong> <${Money} minor=${amount} currency=${currency} /> ${reason}, ${DISPUTES[status]}</li>`,
        )}
      </ul>`;

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
  const payment = /** @type {Payment | undefined} */ (loaded.value);
  return html`<p><a href="/console/merchant">All my payments</a></p>
    <h1>Payment <span class="id">${id}</span></h1>
    <${ProblemBox} problem=${loaded.problem} again=${loaded.again} />
    ${payment === undefined && loaded.problem === undefined && html`<${Waiting} what="the payment" />`}
    ${
      payment !== undefined &&
      html`<dl class="figures">
          <${Fact} name="Status" href=${`#${payment.transactions.at(-1)?.id ?? 'created'}`}><${Status} status=${payment.status} /><//>
          <${Fact} name="Amount" href="#created"><${Money} minor=${payment.amount} currency=${payment.currency} /><//>
          <${Fact} name="Captured" href=${madeBy(payment, CAPTURES)}><${Money} minor=${payment.capturedAmount} currency=${payment.currency} /><//>
          <${Fact} name="Refunded" href=${madeBy(payment, REFUNDS)}><${Money} minor=${payment.refundedAmount} currency=${payment.currency} /><//>
          <${Fact} name="Can be refunded" href=${madeBy(payment, MOVES)}><${Money} minor=${payment.refundableAmount} currency=${payment.currency} /><//>
        </dl>
        <h2 id="happened">What happened</h2><${Story} payment=${payment} /><${Disputes} payment=${payment} /><${Metadata} payment=${payment} /><${Raw} value=${payment} />`
    }`;
};

const COLUMNS = ['Payment', 'Status', 'Amount', 'Reference', 'Attempts', 'Created'];
const CAPTION = 'Newest first. The first page is read again every two seconds.';

/** @param {{ payments: readonly Payment[] }} props */
const Listed = ({
  payments,
}) => html`<${Table} label="My payments" columns=${COLUMNS} caption=${CAPTION}>
  <tbody>${payments.map(
    (payment) => html`<tr key=${payment.paymentId}>
      <td><a class="id" href=${`/console/merchant/${encodeURIComponent(payment.paymentId)}`}>${payment.paymentId}</a></td>
      <td><${Status} status=${payment.status} /> ${payment.disputes?.some(({ status }) => status === 'OPEN') && html`<${Disputed} />`}</td>
      <td><a href=${`/console/merchant/${encodeURIComponent(payment.paymentId)}`}><${Money} minor=${payment.amount} currency=${payment.currency} /></a></td>
      <td><span class="id">${payment.merchantReference ?? ''}</span></td>
      <td>${payment.transactions.map(({ type }) => type).join(', ')}</td>
      <td><${Time} at=${payment.createdAt} /></td>
    </tr>`,
  )}</tbody><//>`;

const AllPayments = () => {
  const first = useAsk(pathOf('/api/v1/payments', { limit: PAGE }), LIST_MS);
  const page = /** @type {{ payments: Payment[], nextCursor?: string } | undefined} */ (
    first.value
  );
  const [older, setOlder] = useState(/** @type {readonly Payment[]} */ ([]));
  const [cursor, setCursor] = useState(/** @type {string | undefined} */ (undefined));
  const [problem, setProblem] = useState(/** @type {Problem | undefined} */ (undefined));
  const isFirst = older.length === 0;
  useEffect(() => {
    if (isFirst) setCursor(page?.nextCursor);
  }, [page]);
  const more = async () => {
    /** @type {import('../api.js').Outcome<{ payments: Payment[], nextCursor?: string }>} */
    const outcome = await ask(pathOf('/api/v1/payments', { limit: PAGE, cursor }));
    setProblem(outcome.ok ? undefined : outcome.problem);
    if (!outcome.ok) return;
    setOlder([...older, ...outcome.value.payments]);
    setCursor(outcome.value.nextCursor);
  };
  const newest = page?.payments ?? [];
  const shown = [
    ...newest,
    ...older.filter(({ paymentId }) => !newest.some((one) => one.paymentId === paymentId)),
  ];
  const isEmpty = page !== undefined && shown.length === 0 && page.nextCursor === undefined;
  return html`<h1>My payments</h1>
    <${ProblemBox} problem=${first.problem ?? problem} again=${first.again} />
    ${page === undefined && first.problem === undefined && html`<${Waiting} what="payments" />`}
    ${isEmpty && html`<p role="status">There is no payment yet. One appears here by itself when <a href="/docs">the API</a> has made it.</p>`}
    ${shown.length > 0 && html`<${Listed} payments=${shown} />`}
    ${cursor !== undefined && html`<p><button type="button" onClick=${more}>More</button></p>`}`;
};

/** @param {{ place: import('../router.js').Place }} props */
export const MerchantPage = ({ place: { id } }) =>
  id === undefined ? html`<${AllPayments} />` : html`<${OnePayment} key=${id} id=${id} />`;
