/** The messages of a topic as the broker has them, or would have them: computed from the log. */
import { useEffect, useState } from 'preact/hooks';
import { download } from '../../api.js';
import { pathOf } from '../../format.js';
import { html, ProblemBox, Raw, RevisionLink, Table, Time, Waiting } from '../../parts.js';

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

/** @param {{ place: import('../../router.js').Place }} props */
export const MessagesSection = ({ place }) => {
  const topic = TOPICS.find((name) => name === place.query.get('topic')) ?? 'events';
  const from = place.query.get('from') ?? 'start';
  const path = pathOf(`/ops/v1/topics/${topic}/messages`, { from, limit: LIMIT, keys: 'true' });
  const [page, setPage] = useState(/** @type {Page | undefined} */ (undefined));
  const [problem, setProblem] = useState(
    /** @type {import('../../api.js').Problem | undefined} */ (undefined),
  );
  useEffect(() => {
    let isLeft = false;
    const read = async () => {
      const outcome = await download(path, 'application/x-ndjson');
      if (isLeft) return;
      setProblem(outcome.ok ? undefined : outcome.problem);
      if (!outcome.ok) return setPage(undefined);
      const { bytes, headers } = outcome.value;
      const lines = new TextDecoder().decode(bytes).split('\n').filter(Boolean);
      const next = headers.get('next-position') ?? from;
      setPage({ messages: lines.map((line) => JSON.parse(line)), next });
    };
    read();
    return () => {
      isLeft = true;
    };
  }, [path]);
  const addressOf = (/** @type {string} */ name, /** @type {string} */ after) =>
    pathOf('/console/operate/messages', { topic: name, from: after });
  return html`<h2>Messages of the topic ${topic}</h2>
    <p>${TOPICS.map((name) => html`<a href=${addressOf(name, 'start')}>${name}</a> `)} <a href="/console/operate/parked">Topics</a></p>
    <${ProblemBox} problem=${problem} />
    ${page === undefined && problem === undefined && html`<${Waiting} what="messages" />`}
    ${
      page !== undefined &&
      html`<p>Computed from the log ${from === 'start' ? 'from its start' : `after #${from}`}.
        ${page.next !== from && html` <a href=${addressOf(topic, page.next)}>After #${page.next}</a>`}</p>
      <${Table} label="Messages" columns=${['Position', 'Time', 'Type', 'Key', 'Partition', 'Number in it']}>
        <tbody>${page.messages.map((one) => html`<${Row} message=${one} isOfPayment=${topic !== 'seals'} />`)}</tbody><//>
      ${page.messages.length === 0 && html`<p class="hint">No message of this topic here.</p>`}`
    }`;
};
