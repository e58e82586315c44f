/** A payment: its whole history, what was true at any revision, and what would be allowed now. */
import { useEffect, useState } from 'preact/hooks';
import { download, useAsk, useAttempt } from '../api.js';
import { AtProvider } from '../at-provider.js';
import { Erased } from '../erasure.js';
import { Explain } from '../explain.js';
import { numberOf, pathOf, paymentPage, paymentRoute } from '../format.js';
import { AtRevision } from '../moment.js';
import { BrokenBox, Disputed, FailedBox, Finding, html, Raw, Shown, Status } from '../parts.js';
import { goTo } from '../router.js';
import { Timeline } from '../timeline.js';

/** @import { AuditTimeline as History, AuditVerification as Verification } from '../../../audit/contract.ts' */
/** @typedef {import('../at-provider.js').Reconciliation} Reconciliation */

/** @param {{ verification: Verification | undefined }} props */
const Verified = ({ verification }) => {
  if (verification === undefined) return html`<p role="status">Verifying …</p>`;
  const { ok, events, broken } = verification;
  return ok
    ? html`<${Finding} isGood=${true}>Verified: <a href="#happened">${numberOf(events, 'event')}</a>, every hash and every sum fits.<//>`
    : html`<${BrokenBox} broken=${broken} />`;
};

/** @type {(name: string, content: BlobPart) => void} */
const saveFile = (name, content) => {
  const address = URL.createObjectURL(new Blob([content]));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
};

const MANIFEST = '{"manifest":';
const BREAK = '{"broken":';

/**
 * The files of an export as `payments export` writes them (docs/audit.md): the lines of events, and the
 * manifest of the last line; undefined where it was cut off. A line that names a break stays out.
 * @param {Uint8Array<ArrayBuffer>} received
 */
export const exportFiles = (received) => {
  const lines = new TextDecoder().decode(received).split('\n');
  const [last = '', rest] = lines.splice(-2);
  if (rest !== '' || !last.startsWith(MANIFEST)) return undefined;
  const { manifest } = JSON.parse(last);
  const events = lines.filter((line) => !line.startsWith(BREAK));
  const bytes = new TextEncoder().encode(events.map((line) => `${line}\n`).join(''));
  if (bytes.length !== manifest.bytes) return undefined;
  return { bytes, manifest: `${JSON.stringify(manifest, null, 2)}\n` };
};

const CUT_OFF = {
  status: 0,
  code: 'CUT_OFF',
  sentence: 'The export was cut off before its manifest, so no file was saved.',
  details: [],
  next: 'Download it again.',
};

/** @type {(payment: string) => Promise<import('../api.js').Outcome<NonNullable<ReturnType<typeof exportFiles>>>>} */
const readExport = async (payment) => {
  const outcome = await download(pathOf('/audit/v1/export', { payment }));
  if (!outcome.ok) return outcome;
  const value = exportFiles(outcome.value);
  return value === undefined ? { ok: false, problem: CUT_OFF } : { ok: true, value };
};

/** @param {{ paymentId: string }} props */
const Download = ({ paymentId }) => {
  const { problem, attempt } = useAttempt();
  const [saved, setSaved] = useState('');
  const save = async () => {
    const files = await attempt(readExport(paymentId));
    if (files === undefined) return;
    const file = `${paymentId}.jsonl`;
    saveFile(`${file}.manifest.json`, files.manifest);
    saveFile(file, files.bytes);
    setSaved(file);
  };
  return html`<button type="button" onClick=${save}>Download the events</button>
    ${saved !== '' && html`<span role="status">Saved, with its manifest. Check it without a service: <code>npx payments verify --file ${saved}</code></span>`}
    <${FailedBox} problem=${problem} />`;
};

/** @param {{ paymentId: string, history: History, revisionText: string | null }} props */
const Story = ({ paymentId, history, revisionText }) => {
  const { events, broken } = history;
  const isBroken = broken !== undefined;
  const path = paymentRoute(paymentId, 'reconcile');
  /** @type {import('../api.js').Loaded<Reconciliation>} */
  const provider = useAsk(isBroken ? undefined : path);
  const last = events.length - 1;
  // The event that was changed is what the reader came for.
  const brokenAt = events.findIndex((event) => event.broken !== undefined);
  const first = brokenAt === -1 ? last : brokenAt;
  const wanted = revisionText === null ? first : Number(revisionText);
  const revision = Number.isInteger(wanted) ? Math.max(0, Math.min(last, wanted)) : first;
  const address = paymentPage(paymentId);
  /** @param {number} next */
  const choose = (next) => goTo(paymentPage(paymentId, next), true);
  useEffect(() => {
    /** @param {KeyboardEvent} event */
    const step = (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      // In a field, or in what scrolls sideways, the key has another meaning; with Alt it goes back.
      const isElsewhere =
        event.target instanceof Element &&
        event.target.closest('input, select, textarea, pre, .scrolls');
      const isShortcut = event.altKey || event.ctrlKey || event.metaKey || event.shiftKey;
      if (by === undefined || isElsewhere || isShortcut) return;
      event.preventDefault();
      choose(Math.max(0, Math.min(last, revision + by)));
    };
    addEventListener('keydown', step);
    return () => removeEventListener('keydown', step);
  }, [revision, last]);
  return html`<div class="story">
    <section aria-labelledby="happened">
      <h2 id="happened" tabindex="-1">What happened</h2>
      <${Timeline} address=${address} events=${events} chosen=${revision} choose=${choose} reconciliation=${provider.value} />
      <${Raw} value=${events.length > 200 ? events.slice(0, 200) : events} name=${events.length > 200 ? 'Raw JSON of the first 200 events' : 'Raw JSON'} />
    </section>
    <${AtRevision} paymentId=${paymentId} events=${events} revision=${revision} choose=${choose} reconciliation=${provider.value} />
    <div>
      <${AtProvider} paymentId=${paymentId} address=${address} loaded=${provider} isBroken=${isBroken} />
      <${Explain} paymentId=${paymentId} address=${address} revision=${revision === last ? undefined : revision} />
    </div>
  </div>`;
};

/** @param {History | undefined} history what the payment is, unless that is not proven */
const signsOf = ({ events, broken } = { events: [], merchantId: '', paymentId: '' }) => {
  if (broken !== undefined) return html`<span class="status failed">✕ does not verify</span>`;
  const readable = events.filter((event) => 'type' in event);
  const status = readable.findLast((event) => event.status !== undefined)?.status;
  /** @param {string} type */
  const count = (type) => readable.filter((event) => event.type === type).length;
  const isDisputed = count('PaymentDisputed') > count('PaymentDisputeClosed');
  return html`${status && html`<${Status} status=${status} />`} ${isDisputed && html`<${Disputed} />`}`;
};

/** @param {{ place: import('../router.js').Place }} props */
export const PaymentPage = ({ place: { id = '', query } }) => {
  const path = paymentRoute(id, 'events');
  /** @type {import('../api.js').Loaded<History>} */
  const loaded = useAsk(path);
  /** @type {import('../api.js').Loaded<Verification>} */
  const verified = useAsk(paymentRoute(id, 'verify'));
  const again = () => {
    loaded.again();
    verified.again();
  };
  return html`<h1>Payment <span class="id">${id}</span> ${signsOf(loaded.value)}</h1>
    <${Shown} loaded=${loaded} what="the events">${(/** @type {History} */ history) => html`
      <div class="actions"><span>Merchant <span class="id">${history.merchantId}</span></span> <button type="button" onClick=${again}>Read again</button> <${Download} paymentId=${id} /></div>
      ${history.broken === undefined ? html`<${Verified} verification=${verified.value} /><${Erased} paymentId=${id} events=${history.events} />` : html`<${BrokenBox} broken=${history.broken} />`}
      ${history.events.length > 0 && html`<${Story} paymentId=${id} history=${history} revisionText=${query.get('revision')} />`}`}<//>`;
};
