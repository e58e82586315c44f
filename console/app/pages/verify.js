/** Verify: the whole log with progress, its seals, and a head that the reader kept. */
import { useState } from 'preact/hooks';
import { useRun } from '../api.js';
import { counted, numberOf, pathOf } from '../format.js';
import {
  BrokenBox,
  BrokenPlace,
  Fact,
  FailedBox,
  Finding,
  html,
  PaymentLink,
  Raw,
} from '../parts.js';

/** @typedef {import('../../../audit/contract.ts').AuditVerification} Verification */
/** @typedef {{ position: string, hash: string }} Head */
/** @typedef {{ verified: number, of: number, estimated: boolean }} Progress */

const GUARANTEES = {
  log: 'One chain over the whole log: nothing can be taken out of it.',
  sealed: 'One chain up to the last seal, and one within each payment.',
  stream: 'One chain within each payment.',
};
/** @type {Readonly<Record<string, string>>} a finding without words of its own is said as it is */
const FINDINGS = {
  INTACT: 'intact',
  INCOMPLETE: 'INCOMPLETE: the chain holds',
  NOT_COMPARABLE: 'no break, but the kept head proves nothing about it',
};

/** @type {(text: string) => Head} throws Error where the text is no manifest */
export const headOf = (text) => {
  const { head } = JSON.parse(text);
  const { position, logHash, hash } = head;
  const known = logHash ?? hash;
  if (typeof position !== 'string' || !/^[0-9a-f]{64}$/.test(known)) throw new Error('no head');
  return { position, hash: known };
};

/** In base64url, as the route takes it. @param {string} text */
const parameterOf = (text) =>
  btoa(String.fromCharCode(...new TextEncoder().encode(text)))
    .replaceAll('+', '-')
    .replaceAll('/', '_');

/** @param {{ choose: (kept: { manifest: string } | undefined) => void }} props */
const KeptHead = ({ choose }) => {
  const [said, setSaid] = useState('');
  /** @param {{ currentTarget: HTMLInputElement }} change */
  const read = async ({ currentTarget }) => {
    const file = currentTarget.files?.[0];
    choose(undefined);
    setSaid('');
    if (file === undefined) return;
    try {
      const text = await file.text();
      const { position, hash } = headOf(text);
      choose({ manifest: parameterOf(text) });
      setSaid(`The log must still hold #${position} with the hash ${hash.slice(0, 12)}….`);
    } catch {
      setSaid(
        'This file is no manifest of an export. `payments export` writes one next to the export.',
      );
    }
  };
  return html`<p><label>Compare with a head that you kept: <input type="file" accept=".json" onChange=${read} /></label></p>
    <p class="hint">A manifest of an earlier export. The service checks its signature and looks for its head.</p>
    <p role="status">${said}</p>`;
};

/** Where the figures of a verification come from: its result, as the service gave it. */
const SOURCE = '#result';

/** @typedef {import('../parts.js').Broken & { actor?: string, note?: string }} Break */

/** @param {{ title: string, breaks: readonly Break[] }} props `actor` and `note` of one that was acknowledged */
const Breaks = ({ title, breaks }) =>
  html`<h2>${title}</h2><ul>${breaks.map((one) => html`<li><${BrokenPlace} broken=${one} />${one.actor && `, by ${one.actor}: ${one.note}`}</li>`)}</ul>`;

/** @type {NonNullable<Verification['breaks']>} */
const NO_BREAKS = { count: 0, named: [], acknowledged: [] };

/** @param {{ result: Verification }} props */
const Result = ({ result }) => {
  const { ok, finding, guarantee, events, erased, head, broken, keptHead, sealed } = result;
  const { breaks = NO_BREAKS, missingPayments = [] } = result;
  const read = html`<a href=${SOURCE}>${numberOf(events, 'event')}${head === null ? '' : `, up to #${head.position}`}</a>`;
  const said =
    broken === undefined
      ? html`${FINDINGS[finding] ?? finding}: ${read}`
      : html`${finding}: <a href=${SOURCE}>${numberOf(Math.max(1, breaks.count), 'break')}</a> in ${read}`;
  return html`<${Finding} isGood=${ok}>${said}<//>
    <${BrokenBox} broken=${broken} />
    ${breaks.count > 1 && html`<${Breaks} title=${`Breaks: ${counted(breaks.count)}`} breaks=${breaks.named} />`}
    ${breaks.acknowledged.length > 0 && html`<${Breaks} title="Acknowledged" breaks=${breaks.acknowledged} />`}
    ${ok && html`<p>${GUARANTEES[guarantee]}</p>`}
    ${head !== null && html`<p>${head.logHash === undefined ? 'Last event' : 'Head'}: <a href=${SOURCE}>#${head.position}</a> <code>${head.logHash ?? head.hash}</code></p>`}
    <dl class="figures">
      ${keptHead && html`<${Fact} name="Kept head" href=${SOURCE} isBad=${!keptHead.found}>#${keptHead.position} ${keptHead.notComparable ?? (keptHead.found ? 'found' : 'not found')}<//>`}
      ${erased && html`<${Fact} name="Payments erased" href=${SOURCE}>${counted(erased)}<//>`}
      ${
        sealed &&
        html`<${Fact} name="Seals" href=${SOURCE}>${counted(sealed.seals)} fit${sealed.position === undefined ? '' : `, the last up to #${sealed.position}`}<//>
        <${Fact} name="Events after the last seal" href=${SOURCE}>${counted(sealed.eventsAfter)}<//>
        <${Fact} name="Sealing key" href=${SOURCE}>${sealed.keyId ?? 'none'}${sealed.trustedKeyId === undefined ? ' (checked against no key)' : ''}<//>`
      }
    </dl>
    ${
      missingPayments.length > 0 &&
      html`<h2>Payments that the log lost</h2><ul>${missingPayments.map((id) => html`<li><${PaymentLink} id=${id} /></li>`)}</ul>`
    }
    <${Raw} id="result" value=${result} />`;
};

export const VerifyPage = () => {
  const [kept, setKept] = useState(/** @type {{ manifest: string } | undefined} */ (undefined));
  /** @type {ReturnType<typeof useRun<Verification, Progress>>} */
  const { isRunning, progress, result, problem, start } = useRun(pathOf('/audit/v1/verify', kept));
  return html`<h1>Verify the whole log</h1>
    <p>Every hash, every link, every sum and every seal, from the first event to the last.</p>
    <${KeptHead} choose=${setKept} />
    <p><button type="button" onClick=${start} aria-disabled=${isRunning}>Verify</button></p>
    ${
      isRunning &&
      html`<p role="status"><label>Verifying <progress max=${progress?.of ?? 1} value=${progress?.verified ?? 0}></progress></label>
        ${progress && `${counted(progress.verified)} of ${progress.estimated ? 'about ' : ''}${numberOf(progress.of, 'event')}`}</p>`
    }
    <${FailedBox} problem=${problem} again=${start} />
    ${result !== undefined && html`<${Result} result=${result} />`}`;
};
