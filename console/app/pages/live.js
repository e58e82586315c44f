/** Live: what happens now, and whether anything is behind, unresolved or unverified. */
import { useState } from 'preact/hooks';
import { useAsk } from '../api.js';
import { counted, duration, numberOf } from '../format.js';
import { useLiveEvents } from '../live-events.js';
import { Clock, EventMoney, Fact, FailedBox, html, Name, PaymentLink } from '../parts.js';
import { hasScope, isOfAll } from '../session.js';
import { useNarrow, Windowed } from '../windowed.js';

/** @typedef {import('../live-events.js').ShownEvent} ShownEvent */
/** @typedef {import('../../../projector/contract.ts').ProjectionList['projections'][number]} Projection */
/** @typedef {{ relay: { state: string, parked: number }, lag?: { events: number, seconds: number } }} Topics */
/** @typedef {{ verification: { lastRunAt: string | null, broken: { position: string } | null } | null, seal: { position: string, sealedAt: string } | null }} LogStatus */

/** @param {ShownEvent} event */
const isRead = (event) => 'type' in event && event.type === 'AuditAccessed';

const STATUS_MS = 2_000;
const ROW_PX = { wide: 46, narrow: 112 };

/** @param {ShownEvent} event */
const EventRow = (event) => {
  const { position, revision, paymentId, stream } = event;
  const subject =
    paymentId === undefined
      ? html`<span class="id">${stream}</span>`
      : html`<${PaymentLink} id=${paymentId} revision=${revision} />`;
  if ('unreadable' in event)
    return html`<div class="entry"><span class="at">#${position}</span><strong class="type bad-text">✕ cannot be read</strong>${subject}</div>`;
  return html`<div class="entry"><span class="at"><${Clock} at=${event.time} /></span>
    <span class="type"><${Name} name=${event.type} /><small>${event.why}</small></span>${subject}
    <span class="amount">${event.amounts && paymentId !== undefined && html`<${EventMoney} id=${paymentId} revision=${revision} minor=${event.amounts.amount} currency=${event.amounts.currency} />`}</span>
    <span class="who">${event.actor}</span></div>`;
};

/** @type {(events: number | null, seconds: number | null) => string} */
const behind = (events, seconds) =>
  `${numberOf(events ?? 0, 'event')}${seconds ? `, ${duration(seconds * 1000)}` : ''} behind`;

/** @param {Topics | undefined} topics */
const topicsText = (topics) => {
  if (topics === undefined) return '…';
  const { relay, lag } = topics;
  if (relay.state === 'off') return 'off: no broker is set';
  return lag === undefined ? relay.state : `${relay.state}, ${behind(lag.events, lag.seconds)}`;
};

const Operation = () => {
  const projections = useAsk('/ops/v1/projections', STATUS_MS);
  const unresolved = useAsk('/ops/v1/unresolved', STATUS_MS);
  const log = useAsk('/ops/v1/log', STATUS_MS);
  const topics = /** @type {Topics | undefined} */ (useAsk('/ops/v1/topics', STATUS_MS).value);
  const projection = /** @type {{ projections: Projection[] } | undefined} */ (projections.value)
    ?.projections[0];
  const waiting = /** @type {{ unresolved: { since: string }[] } | undefined} */ (unresolved.value)
    ?.unresolved;
  const { verification, seal } = /** @type {LogStatus} */ (
    log.value ?? { verification: null, seal: null }
  );
  const isBehind = (projection?.lagSeconds ?? 0) > 5;
  return html`<${FailedBox} problem=${projections.problem} />
    <dl class="figures">
      <${Fact} name="Read models" href="/console/operate/rebuild" isBad=${isBehind || projection?.state === 'stuck'}>
        ${projection === undefined ? '…' : `${projection.state}, ${behind(projection.lagEvents, projection.lagSeconds)}`}
      <//>
      <${Fact} name="Topics" href="/console/operate/parked" isBad=${['halted', 'backing-off'].includes(topics?.relay.state ?? '')}>${topicsText(topics)}<//>
      <${Fact} name="Parked" href="/console/operate/parked" isBad=${(projection?.parked ?? 0) > 0}>${projection?.parked ?? '…'}<//>
      <${Fact} name="Unresolved" href="/console/operate/unresolved" isBad=${(waiting?.length ?? 0) > 0}>${waiting?.length ?? '…'}<//>
      <${Fact} name="Last verification" href="/console/verify" isBad=${verification?.broken != null}>
        ${verification?.lastRunAt == null ? 'not yet' : `${verification.broken === null ? 'intact' : 'BROKEN'}, ${duration(Date.now() - Date.parse(verification.lastRunAt))} ago`}
      <//>
      <${Fact} name="Last seal" href="/console/verify">
        ${seal === null ? 'none' : `up to #${seal.position}, ${duration(Date.now() - Date.parse(seal.sealedAt))} ago`}
      <//>
    </dl>`;
};

export const LivePage = () => {
  const { state, act } = useLiveEvents('now');
  const { isPaused, isConnected, problem, seen } = state;
  const [hasReads, setReads] = useState(false);
  /** @param {readonly ShownEvent[]} events */
  const chosen = (events) => (hasReads ? events : events.filter((event) => !isRead(event)));
  const [shown, waiting] = [chosen(state.shown), chosen(state.waiting)];
  const rowHeight = useNarrow() ? ROW_PX.narrow : ROW_PX.wide;
  const isOperator = hasScope('ops:admin') && isOfAll();
  const connection = () => {
    if (problem !== undefined) return html`<${FailedBox} problem=${problem} />`;
    return html`<p role="status">${isConnected ? html`Connected. <a href="#stored">${numberOf(seen, 'event')}</a> since this page was opened.` : 'Connecting …'}</p>`;
  };
  return html`<h1>Live</h1>
    ${isOperator && html`<${Operation} />`}
    <h2 id="stored" tabindex="-1">Events</h2>
    ${connection()}
    <p class="actions"><button type="button" aria-pressed=${isPaused} onClick=${() => act({ kind: 'pause', isPaused: !isPaused })}>
      ${isPaused ? `Go on (${counted(waiting.length)} new)` : 'Pause'}</button>
      <label><input type="checkbox" checked=${hasReads} onChange=${() => setReads(!hasReads)} /> Show reads by auditors too</label>
      ${isPaused && html`<span>Paused: new events wait.</span>`}</p>
    ${shown.length === 0 && html`<p class="hint">Each event appears here when it is stored. <code>npx payments trigger full-story</code> makes some.</p>`}
    <${Windowed} rows=${shown} rowHeight=${rowHeight} label="Events, newest first" row=${EventRow}
      onFocus=${() => isPaused || act({ kind: 'pause', isPaused: true })}
      onScrolled=${(/** @type {boolean} */ isAtTop) => isPaused === isAtTop && act({ kind: 'pause', isPaused: !isAtTop })} />`;
};
