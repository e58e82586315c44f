/** Payments whose document stopped at an event; the topics, and the payments that the relay has parked. */
import { useState } from 'preact/hooks';
import { send, useAsk } from '../../api.js';
import { counted, duration, numberOf } from '../../format.js';
import {
  Fact,
  FailedBox,
  Finding,
  html,
  PaymentLink,
  Raw,
  RevisionLink,
  Shown,
  Table,
  Time,
} from '../../parts.js';
import { isOfAll } from '../../session.js';

/** @import { ParkedList, ParkedRetry as Retried } from '../../../../projector/contract.ts' */
/** @import { RelayParkedList as Listed, RelayParkedRetry as RelayRetried } from '../../../../topics/contract.ts' */
/** @typedef {ParkedList['parked'][number]} Parked */
/** @typedef {Listed['parked'][number]} RelayParked */

const LIST_MS = 3_000;

/** @param {{ id: string, revision: number, button: string, said: string, act: () => void, children?: unknown }} props */
const Card = ({ id, revision, button, said, act, children }) => html`<li class="card">
  <h3><${PaymentLink} id=${id} revision=${revision} /></h3>
  <p>${children}</p>
  <p><button type="button" onClick=${act}>${button}</button> <span role="status">${said}</span></p></li>`;

/** @param {{ parked: Parked, again: () => void }} props */
const Row = ({ parked: { paymentId, revision, reason, since }, again }) => {
  const [said, setSaid] = useState('');
  const retry = async () => {
    setSaid('Reading the payment again …');
    /** @type {import('../../api.js').Outcome<Retried>} */
    const outcome = await send(`/ops/v1/parked/${encodeURIComponent(paymentId)}/retry`);
    if (!outcome.ok) setSaid(outcome.problem.sentence);
    else if (outcome.value.whole) setSaid('Whole again.');
    else setSaid(`Still parked at revision ${outcome.value.at}: ${outcome.value.reason}`);
    again();
  };
  return html`<${Card} id=${paymentId} revision=${revision} button="Read it again" said=${said} act=${retry}>
    At revision <${RevisionLink} id=${paymentId} revision=${revision} /> since <${Time} at=${since} />: ${reason}<//>`;
};

/** @typedef {{ topics: { name: string, key: string, cleanup: string, partitions: number }[], relay: { state: string, error?: string, checkpoint: string | null, parked: number, counts: { published: number } }, lag?: { events: number, seconds: number } }} Topics */

const RELAY_PARKED = '/ops/v1/topics/parked';

const SENT = 'Sent: nothing of it waits.';

/** @param {RelayRetried} retried */
const outcomeOf = ({ sent, at, reason }) =>
  sent ? SENT : `Still parked at revision ${at}: ${reason}`;

/** @param {{ parked: RelayParked, said: string, act: () => void }} props */
const RelayRow = ({ parked: { paymentId, from, to, reason, since }, said, act }) => {
  const last = from === to ? null : html` to <${RevisionLink} id=${paymentId} revision=${to} />`;
  return html`<${Card} id=${paymentId} revision=${from} button="Send again" said=${said} act=${act}>
    The messages of revision <${RevisionLink} id=${paymentId} revision=${from} />${last} wait since <${Time} at=${since} />: ${reason}<//>`;
};

/** @param {import('../../api.js').Problem} problem */
const wordsOf = ({ sentence, details }) => [sentence, ...details].join(' ');

/** Of all that are parked, where one request sends them again. */
const ALL = '';

/** @param {{ onSent: () => void }} props */
const RelayParkedPart = ({ onSent }) => {
  const loaded = useAsk(RELAY_PARKED, LIST_MS);
  const [said, setSaid] = useState(/** @type {Readonly<Record<string, string>>} */ ({}));
  const listed = /** @type {Listed | undefined} */ (loaded.value);
  /** @param {Readonly<Record<string, string>>} outcomes */
  const say = (outcomes) => setSaid((before) => ({ ...before, ...outcomes }));

  /** @param {string} id */
  const sendAgain = async (id) => {
    say({ [id]: 'Sending …' });
    const path = id === ALL ? 'retry' : `${encodeURIComponent(id)}/retry`;
    /** @type {import('../../api.js').Outcome<any>} */
    const outcome = await send(`${RELAY_PARKED}/${path}`);
    loaded.again();
    if (!outcome.ok) return say({ [id]: wordsOf(outcome.problem) });
    /** @type {{ retried: RelayRetried[], left: number }} */
    const { retried, left } = id === ALL ? outcome.value : { retried: [outcome.value], left: 0 };
    const done = retried.filter(({ sent }) => sent).length;
    const rest = left > 0 ? ` ${counted(left)} were not tried yet: send again.` : '';
    const all = `${counted(done)} sent, ${counted(retried.length - done)} still parked.${rest}`;
    const outcomes = retried.map((one) => [one.paymentId, outcomeOf(one)]);
    say({ ...(id === ALL && { [ALL]: all }), ...Object.fromEntries(outcomes) });
    onSent();
  };

  const sent = Object.keys(said).filter((id) => said[id] === SENT);
  const { count = 0, parked = [] } = listed ?? {};
  return html`<h2 id="relay-parked">Parked at the relay</h2>
    <${FailedBox} problem=${loaded.problem} />
    ${sent.length > 0 && html`<${Finding} isGood>Sent, nothing of them waits: ${sent.map((id) => html`<${PaymentLink} id=${id} /> `)}<//>`}
    ${listed !== undefined && count === 0 && html`<p class="finding good">✓ No message to the topics waits for a parked payment.</p>`}
    ${count > 0 && html`<p>Their messages wait, in order; those of other payments go on. Once the cause is mended, send them again; the relay also tries after each of its starts.</p>`}
    <p>${count > 1 && html`<button type="button" onClick=${() => sendAgain(ALL)}>Send all again</button>`} <span role="status">${said[ALL]}</span></p>
    <ul class="cards">${parked.map((one) => html`<${RelayRow} key=${one.paymentId} parked=${one} said=${said[one.paymentId] ?? ''} act=${() => sendAgain(one.paymentId)} />`)}</ul>
    ${count > parked.length && html`<p>${counted(count - parked.length)} more are not listed: <code>npx payments topics retry --all</code> sends them too.</p>`}`;
};

/** @param {{ value: Topics, again: () => void }} props */
const TopicsPart = ({ value, again }) => {
  const { relay, topics, lag } = value;
  return html`<dl class="figures">
      <${Fact} name="Relay" isBad=${['halted', 'backing-off'].includes(relay.state)}>${relay.state === 'off' ? 'off: no broker is set' : relay.state}<//>
      ${lag && html`<${Fact} name="Behind" href="/console/live">${numberOf(lag.events, 'event')}, ${duration(lag.seconds * 1000)}<//>`}
      <${Fact} name="Sent since the start" href="#topics">${counted(relay.counts.published)}<//>
      <${Fact} name="Parked at the relay" href="#relay-parked" isBad=${relay.parked > 0}>${counted(relay.parked)}<//>
    </dl>
    ${relay.error && html`<p class="bad-text">${relay.error}</p>`}
    <${Table} label="Topics" columns=${['Topic', 'Key', 'Partitions', 'Kept']}>
      ${topics.map((one) => html`<tr><th scope="row">${one.name}</th><td>${one.key}</td><td>${one.partitions}</td><td>${one.cleanup === 'compact' ? 'the last of each key' : 'for ever'}</td></tr>`)}<//>
    <${Raw} id="topics" value=${value} />
    <${RelayParkedPart} onSent=${again} />`;
};

export const ParkedSection = () => {
  const loaded = useAsk('/ops/v1/parked', LIST_MS);
  /** @param {{ parked: Parked[] }} value */
  const cards = ({ parked }) =>
    parked.length === 0
      ? html`<p class="finding good">✓ No payment is parked.</p>`
      : html`<ul class="cards">${parked.map((one) => html`<${Row} key=${one.paymentId} parked=${one} again=${loaded.again} />`)}</ul>`;
  const topics = useAsk(isOfAll() ? '/ops/v1/topics' : undefined, LIST_MS);
  return html`<h2>Parked payments</h2>
    <${Shown} loaded=${loaded} what="parked payments">${cards}<//>
    ${isOfAll() && html`<h2>Topics</h2><${Shown} loaded=${topics} what="the topics">${(/** @type {Topics} */ value) => html`<${TopicsPart} value=${value} again=${topics.again} />`}<//>`}`;
};
