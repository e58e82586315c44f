/** Payments whose document stopped at an event, and below them the topics. */
import { useState } from 'preact/hooks';
import { send } from '../../api.js';
import { html } from '../../html.js';
import { PaymentLink, ProblemBox, Time, Waiting } from '../../parts.js';
import { isOfAll } from '../../session.js';
import { useAsk } from '../../use-ask.js';
import { RevisionLink } from './links.js';
import { TopicsPart } from './topics.js';

/** @typedef {import('../../../../projector/contract.ts').ParkedList['parked'][number]} Parked */
/** @typedef {import('../../../../projector/contract.ts').ParkedRetry} Retried */

const LIST_MS = 3_000;

/** @param {{ parked: Parked, again: () => void }} props */
const Row = ({ parked, again }) => {
  const [said, setSaid] = useState('');
  const { paymentId, revision, reason, since } = parked;
  const retry = async () => {
    setSaid('Reading the payment again …');
    /** @type {import('../../api.js').Outcome<Retried>} */
    const outcome = await send(`/ops/v1/parked/${encodeURIComponent(paymentId)}/retry`);
    if (!outcome.ok) setSaid(outcome.problem.sentence);
    else if (outcome.value.whole) setSaid('Whole again.');
    else setSaid(`Still parked at revision ${outcome.value.at}: ${outcome.value.reason}`);
    again();
  };
  return html`<li class="card"><h3><${PaymentLink} id=${paymentId} revision=${revision} /></h3>
    <p>At revision <${RevisionLink} id=${paymentId} revision=${revision} /> since <${Time} at=${since} />: ${reason}</p>
    <p><button type="button" onClick=${retry}>Read it again</button> <span role="status">${said}</span></p></li>`;
};

export const ParkedSection = () => {
  const loaded = useAsk('/ops/v1/parked', LIST_MS);
  const parked = /** @type {{ parked: Parked[] } | undefined} */ (loaded.value)?.parked;
  return html`<h2>Parked payments</h2>
    <${ProblemBox} problem=${loaded.problem} again=${loaded.again} />
    ${parked === undefined && loaded.problem === undefined && html`<${Waiting} what="parked payments" />`}
    ${parked?.length === 0 && html`<p class="finding good">✓ No payment is parked.</p>`}
    ${parked !== undefined && parked.length > 0 && html`<ul class="cards">${parked.map((one) => html`<${Row} key=${one.paymentId} parked=${one} again=${loaded.again} />`)}</ul>`}
    ${isOfAll() && html`<${TopicsPart} />`}`;
};
