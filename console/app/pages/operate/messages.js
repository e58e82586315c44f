/** The messages of a topic as the broker has them, or would have them: computed from the log. */
import { download, useAsk } from '../../api.js';
import { pathOf } from '../../format.js';
import { html, Raw, RevisionLink, Shown, Table, Time } from '../../parts.js';

/** @typedef {{ partition: number, key: string, value: { type: string, sequence: string, partitionsequence?: string, globalposition: string, time: string } }} Message */
/** @typedef {{ messages: Message[], next: string }} Page */

const TOPICS = ['events', 'state', 'seals'];
const LIMIT = 50;

/** @param {{ message: Message, isOfPayment: boolean }} props */
const Row = ({ message: { partition, key, value }, isOfPayment }) => {
  const { type, sequence, partitionsequence, globalposition, time } = value;
  const revision = html`<${RevisionLink} id=${key} revision=${Number(sequence)} />`;
  return html`<tr><td>#${globalposition}</td><td><${Time} at=${time} /></td>
    <td>${type}<${Raw} value=${value} name="Message" /></td>
    <td class="id">${key}${isOfPayment && html`, revision ${revision}`}</td>
    <td>${partition}</td><td>${partitionsequence}</td></tr>`;
};

/** @type {(path: string, init: RequestInit) => Promise<import('../../api.js').Outcome<Page>>} */
const readPage = async (path, init) => {
  const outcome = await download(path, init);
  if (!outcome.ok) return outcome;
  const { bytes, headers } = outcome.value;
  const lines = new TextDecoder().decode(bytes).split('\n').filter(Boolean);
  const next = headers.get('next-position') ?? 'start';
  return { ok: true, value: { messages: lines.map((line) => JSON.parse(line)), next } };
};

/** @param {{ place: import('../../router.js').Place }} props */
export const MessagesSection = ({ place }) => {
  const topic = TOPICS.find((name) => name === place.query.get('topic')) ?? 'events';
  const from = place.query.get('from') ?? 'start';
  const path = pathOf(`/ops/v1/topics/${topic}/messages`, { from, limit: LIMIT, keys: 'true' });
  const loaded = useAsk(path, undefined, readPage);
  const addressOf = (/** @type {string} */ name, /** @type {string} */ after) =>
    pathOf('/console/operate/messages', { topic: name, from: after });
  return html`<h2>Messages of the topic ${topic}</h2>
    <p>${TOPICS.map((name) => html`<a href=${addressOf(name, 'start')}>${name}</a> `)} <a href="/console/operate/parked">Topics</a></p>
    <${Shown} loaded=${loaded} what="messages">${(/** @type {Page} */ { messages, next }) => html`
      <p>Computed from the log ${from === 'start' ? 'from its start' : `after #${from}`}.
        ${next !== from && html` <a href=${addressOf(topic, next)}>After #${next}</a>`}</p>
      <${Table} label="Messages" columns=${['Position', 'Time', 'Type', 'Key', 'Partition', 'Number in it']}>
        <tbody>${messages.map((one) => html`<${Row} message=${one} isOfPayment=${topic !== 'seals'} />`)}</tbody><//>
      ${messages.length === 0 && html`<p class="hint">No message of this topic here.</p>`}`}<//>`;
};
