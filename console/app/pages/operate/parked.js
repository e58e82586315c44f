/** Payments whose document stopped at an event, and the topics. */
import { useState } from 'preact/hooks';
import { send } from '../../api.js';
import { counted, duration } from '../../format.js';
import { html } from '../../html.js';
import { Fact, PaymentLink, ProblemBox, Raw, Time, Waiting } from '../../parts.js';
import { isOfAll } from '../../session.js';
import { useAsk } from '../../use-ask.js';

/** @typedef {{ paymentId: string, revision: number, reason: string, since: string }} Parked */
/** @typedef {{ whole: boolean, at?: number, reason?: string }} Retried */
/** @typedef {{ topics: { topic: string, name: string, key: string, cleanup: string, partitions: number }[], relay: { state: string, error?: string, checkpoint: string | null, parked: number, counts: { published: number } }, lag?: { events: number, seconds: number } }} Topics */

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
    <p>At revision ${revision} since <${Time} at=${since} />: ${reason}</p>
    <p><button type="button" onClick=${retry}>Read it again</button> <span role="status">${said}</span></p></li>`;
};

const TopicsPart = () => {
  const loaded = useAsk('/ops/v1/topics', LIST_MS);
  const value = /** @type {Topics | undefined} */ (loaded.value);
  if (value === undefined) return html`<${ProblemBox} problem=${loaded.problem} />`;
  const { relay, topics, lag } = value;
  return html`<h2>Topics</h2>
    <dl class="figures">
      <${Fact} name="Relay" isBad=${['halted', 'backing-off'].includes(relay.state)}>${relay.state === 'off' ? 'off: no broker is set' : relay.state}<//>
      ${lag && html`<${Fact} name="Behind" href="/console/live">${counted(lag.events)} events, ${duration(lag.seconds * 1000)}<//>`}
      <${Fact} name="Sent since the start">${counted(relay.counts.published)}<//>
      <${Fact} name="Parked at the relay" isBad=${relay.parked > 0}>${relay.parked}<//>
    </dl>
    ${relay.parked > 0 && html`<p>Their messages wait, in order. Each start of the relay tries them again; a payment that is parked above is read again there.</p>`}
    ${relay.error && html`<p class="bad-text">${relay.error}</p>`}
    <div class="scrolls" tabindex="0" role="region" aria-label="Topics"><table><thead><tr><th scope="col">Topic</th><th scope="col">Key</th><th scope="col">Partitions</th><th scope="col">Kept</th></tr></thead>
      <tbody>${topics.map((one) => html`<tr><th scope="row">${one.name}</th><td>${one.key}</td><td>${one.partitions}</td><td>${one.cleanup === 'compact' ? 'the last of each key' : 'for ever'}</td></tr>`)}</tbody></table></div>
    <${Raw} value=${value} />`;
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
