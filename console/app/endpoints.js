/** Webhook endpoints with their state and attempts: a merchant's own, or those of all for an operator. */
import { useState } from 'preact/hooks';
import { send, useAsk } from './api.js';
import { duration, numberOf, utc } from './format.js';
import { html, Raw, Shown, Table, Time } from './parts.js';
import { hasScope } from './session.js';

/** @typedef {import('../../webhooks/endpoints/contract.ts').WebhookEndpoint & { merchantId?: string }} Endpoint */
/** @typedef {import('../../webhooks/endpoints/contract.ts').WebhookAttemptList['attempts'][number]} Attempt */

const OWN_ENDPOINTS = '/api/v1/webhook-endpoints';
const ALL_ENDPOINTS = '/ops/v1/webhook-endpoints';

const LIST_MS = 3_000;
const ATTEMPTS = 50;
const SIGNS = { ENABLED: '●', FAILING: '!', DISABLED: '○' };
const OUTCOMES = { ACCEPTED: '✓ accepted', RETRYING: '… tried again', GIVEN_UP: '✕ given up' };

/** @param {{ attempt: Attempt, endpointId: string, isOwn: boolean }} props */
const AttemptRow = ({ attempt, endpointId, isOwn }) => {
  const [said, setSaid] = useState('');
  const { eventId, type, paymentId, at, status, error, latencyMs, nextAt, outcome } = attempt;
  const again = async () => {
    const path = `${OWN_ENDPOINTS}/${encodeURIComponent(endpointId)}/resend`;
    const resent = await send(path, { eventId });
    setSaid(resent.ok ? 'Sent again.' : resent.problem.sentence);
  };
  const address =
    paymentId !== null &&
    `/console/${isOwn ? 'merchant' : 'payments'}/${encodeURIComponent(paymentId)}`;
  const mayResend = isOwn && hasScope('webhooks:write') && paymentId !== null;
  return html`<tr>
    <td><${Time} at=${at} /></td><td>${type}</td>
    <td>${address && html`<a class="id" href=${address}>${paymentId}</a>`}</td>
    <td>${address ? html`<a href=${address}>${attempt.attempt}</a>` : attempt.attempt}</td><td>${status ?? error}, ${latencyMs} ms</td>
    <td class=${outcome === 'GIVEN_UP' ? 'bad-text' : ''}>${OUTCOMES[outcome]}${nextAt !== null && html` at <${Time} at=${nextAt} />`}</td>
    <td>${mayResend && html`<button type="button" onClick=${again}>Send again</button>`} <span role="status">${said}</span></td>
  </tr>`;
};

const COLUMNS = ['At', 'Message', 'Payment', 'Attempt', 'Response', 'Outcome', 'Send again'];

/** @param {{ base: string, endpointId: string }} props */
const Attempts = ({ base, endpointId }) => {
  const path = `${base}/${encodeURIComponent(endpointId)}/attempts?limit=${ATTEMPTS}`;
  const loaded = useAsk(path, LIST_MS);
  /** @param {{ attempts: Attempt[] }} value */
  const shown = ({ attempts }) =>
    attempts.length === 0
      ? html`<p>No attempt yet.</p>`
      : html`<${Table} label="Attempts" columns=${COLUMNS} caption=${`The last ${numberOf(attempts.length, 'attempt')}, the latest first.`}>
        ${attempts.map((attempt) => html`<${AttemptRow} key=${`${attempt.eventId}${attempt.at}`} attempt=${attempt} endpointId=${endpointId} isOwn=${base === OWN_ENDPOINTS} />`)}<//>`;
  return html`<${Shown} loaded=${loaded} what="the attempts">${shown}<//>`;
};

/** @param {{ base: string, endpoint: Endpoint, again: () => void }} props */
const Row = ({ base, endpoint, again }) => {
  const [said, setSaid] = useState('');
  const { id: endpointId, merchantId, url, status } = endpoint;
  const { failingSince, disabledReason, oldestWaiting } = endpoint;
  // A failing endpoint of the merchant shows its reason at once.
  const [isOpen, setOpen] = useState(base === OWN_ENDPOINTS && status === 'FAILING');
  const test = async () => {
    const sent = await send(`${OWN_ENDPOINTS}/${encodeURIComponent(endpointId)}/test`);
    setSaid(sent.ok ? 'A test message is on its way.' : sent.problem.sentence);
    setOpen(true);
    again();
  };
  /** @param {{ currentTarget: HTMLDetailsElement }} change */
  const toggled = ({ currentTarget }) => setOpen(currentTarget.open);
  return html`<li class="card">
    <h3><span class=${status === 'ENABLED' ? 'state' : 'state bad-text'}><span aria-hidden="true">${SIGNS[status]}</span> ${status}</span> <span class="id">${url}</span></h3>
    <p>${merchantId !== undefined && `Of ${merchantId}. `}${failingSince !== null && html`No success since <${Time} at=${failingSince} />. `}${disabledReason !== null && `Disabled: ${disabledReason}. `}
      ${oldestWaiting === null ? 'Nothing waits.' : html`The oldest event waits for <time datetime=${oldestWaiting} title=${`since ${utc(oldestWaiting)} UTC`}>${duration(Date.now() - Date.parse(oldestWaiting))}</time>.`}</p>
    ${base === OWN_ENDPOINTS && hasScope('webhooks:write') && html`<p><button type="button" onClick=${test}>Send a test message</button> <span role="status">${said}</span></p>`}
    <details open=${isOpen} onToggle=${toggled}><summary>Attempts</summary>${isOpen && html`<${Attempts} base=${base} endpointId=${endpointId} />`}</details>
    <${Raw} value=${endpoint} />
  </li>`;
};

/** @param {{ base: string }} props */
const Endpoints = ({ base }) => {
  const loaded = useAsk(base, LIST_MS);
  /** @param {{ endpoints: Endpoint[], unreadable?: string[] }} value */
  const shown = ({ endpoints, unreadable = [] }) => html`
    ${endpoints.length + unreadable.length === 0 && html`<p>No endpoint is registered. <code>npx payments webhooks --help</code></p>`}
    ${unreadable.map((merchantId) => html`<p key=${merchantId} class="bad-text">The endpoints of ${merchantId} cannot be read: nothing is sent to them.</p>`)}
    <ul class="cards">${endpoints.map((endpoint) => html`<${Row} key=${endpoint.id} base=${base} endpoint=${endpoint} again=${loaded.again} />`)}</ul>`;
  return html`<${Shown} loaded=${loaded} what="the endpoints">${shown}<//>`;
};

export const WebhooksPage = () => html`<h1>My webhooks</h1><${Endpoints} base=${OWN_ENDPOINTS} />`;

export const WebhooksSection = () =>
  html`<h2>Webhook endpoints</h2><${Endpoints} base=${ALL_ENDPOINTS} />`;
