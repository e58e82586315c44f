/** How far the read models are, and their rebuild. */
import { send, useAsk, useAttempt } from '../../api.js';
import { counted, duration, numberOf, pathOf } from '../../format.js';
import { Fact, FailedBox, Finding, html, PaymentLink, Raw, Shown } from '../../parts.js';

/** @typedef {import('../../../../projector/contract.ts').ProjectionList['projections'][number]} Projection */
/** @typedef {NonNullable<Projection['rebuild']>} Rebuild */
/** @typedef {NonNullable<Rebuild['result']>} Rebuilt */

const STATUS_MS = 1_000;

/** @param {{ result: Rebuilt }} props */
const Result = ({ result }) => {
  const { events, seconds, equal, served, money, parked } = result;
  return html`<${Finding} isGood=${served && parked.length === 0}><a href="/console/verify">${numberOf(events, 'event')}</a> in <time>${seconds.toFixed(1)} s</time>; the old read models were ${equal ? 'the same' : 'others'}${served ? '' : ', and are still served'}.<//>
    ${!served && html`<p><a href="#other-money">${numberOf(money.count, 'payment')}</a> with other money in the log than in the served read models, which may be the right ones. Verify and reconcile before you accept.</p>`}
    ${money.named.length > 0 && html`<ul id="other-money">${money.named.map(({ paymentId }) => html`<li><${PaymentLink} id=${paymentId} /></li>`)}</ul>`}
    ${parked.length > 0 && html`<p><a href="/console/operate/parked">${numberOf(parked.length, 'parked payment')}</a></p>`}`;
};

/** @param {{ rebuild: Rebuild }} props */
const RebuildState = ({ rebuild }) => {
  const { state, done, total, estimated, perSecond, secondsLeft, result, reason } = rebuild;
  if (state === 'running') {
    return html`<p role="status"><label>Rebuilding <progress max=${total} value=${done}></progress></label>
      ${counted(done)} of <a href="/console/verify">${estimated ? 'about ' : ''}${numberOf(total, 'event')}</a>, ${counted(Math.round(perSecond))} a second, ${duration(secondsLeft * 1000)} left</p>`;
  }
  if (result !== undefined) return html`<${Result} result=${result} />`;
  return html`<${Finding} isGood=${false}>The rebuild failed, the old read models are served: ${reason}<//>`;
};

/** @param {{ projection: Projection, again: () => void }} props */
const RebuildPart = ({ projection, again }) => {
  const { problem, attempt } = useAttempt();
  const { rebuild } = projection;
  const isHeldBack = rebuild?.result?.served === false;
  /** @param {boolean} accept */
  const start = async (accept) => {
    const question = accept
      ? 'Serve the new read models although they say other money?'
      : 'Fill the read models anew from the log? Reads go on meanwhile.';
    if (!confirm(question)) return;
    const given = { accept: accept ? 'true' : undefined };
    await attempt(send(pathOf('/ops/v1/projections/rebuild', given)));
    again();
  };
  return html`<h2>Rebuild</h2>
    <p><button type="button" disabled=${rebuild?.state === 'running'} onClick=${() => start(false)}>Rebuild the read models</button>
      ${isHeldBack && html` <button type="button" onClick=${() => start(true)}>Rebuild and accept the log's money</button>`}</p>
    <${FailedBox} problem=${problem} />
    ${rebuild !== null && html`<${RebuildState} rebuild=${rebuild} />`}`;
};

export const RebuildSection = () => {
  const loaded = useAsk('/ops/v1/projections', STATUS_MS);
  /** @param {{ projections: Projection[] }} value */
  const shown = ({ projections: [projection] }) => {
    if (projection === undefined) return null;
    const { state, checkpoint, head, lagEvents, lagIsExact, lagSeconds, parked, reason } =
      projection;
    return html`<dl class="figures">
      <${Fact} name="State" isBad=${state === 'stuck'}>${state}<//>
      <${Fact} name="Checkpoint" href="/console/live">${checkpoint ?? 'start'}<//>
      <${Fact} name="End of the log" href="/console/live">${head ?? 'none'}<//>
      <${Fact} name="Behind" href="/console/live">${lagEvents === null ? 'unknown' : `${lagIsExact ? '' : 'at least '}${numberOf(lagEvents, 'event')}, ${(lagSeconds ?? 0).toFixed(1)} s`}<//>
      <${Fact} name="Parked" href="/console/operate/parked" isBad=${parked > 0}>${parked}<//>
    </dl>
    ${reason && html`<p class="bad-text">${reason}</p>`}
    <${RebuildPart} projection=${projection} again=${loaded.again} />
    <${Raw} value=${projection} />`;
  };
  return html`<h2>Read models</h2><${Shown} loaded=${loaded} what="how far the read models are">${shown}<//>`;
};
