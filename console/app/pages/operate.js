/** Operate: what waits for a person, and what an operator can start. */
import { useAsk } from '../api.js';
import { WebhooksSection } from '../endpoints.js';
import { html, Links, Name, Shown, Table } from '../parts.js';
import { isOfAll } from '../session.js';
import { AttentionSection } from './operate/attention.js';
import { ParkedSection } from './operate/parked.js';
import { RebuildSection } from './operate/rebuild.js';
import { ReconcileSection } from './operate/reconcile.js';
import { UnresolvedSection } from './operate/unresolved.js';

/** @typedef {import('../../../command-api/back-office/by-hand/contract.ts').ServiceSettings} Settings */

/** @param {Settings} settings */
const shownSettings = ({ version, mode, provider, warnings, settings }) => html`
  <p>Version ${version}, ${mode}. ${provider.simulated ? 'The provider is simulated: no money moves.' : `The provider is ${provider.address}.`} Secrets are hidden.</p>
  ${warnings.map((warning) => html`<p class="problem">${warning}</p>`)}
  <${Table} label="Settings" columns=${['Setting', 'Value', 'From']}>
    ${settings.map((one) => html`<tr><th scope="row"><code><${Name} name=${one.name} /></code></th><td><code>${one.value}</code></td><td>${one.origin}</td></tr>`)}<//>`;

const SettingsSection = () => {
  const loaded = useAsk('/ops/v1/settings');
  return html`<h2>Settings in effect</h2><${Shown} loaded=${loaded} what="the settings">${shownSettings}<//>`;
};

const SECTIONS = {
  unresolved: { title: 'Unresolved', component: UnresolvedSection, isOfAll: false },
  attention: { title: 'Needs a person', component: AttentionSection, isOfAll: false },
  parked: { title: 'Parked and topics', component: ParkedSection, isOfAll: false },
  rebuild: { title: 'Read models', component: RebuildSection, isOfAll: true },
  reconcile: { title: 'Reconcile', component: ReconcileSection, isOfAll: true },
  webhooks: { title: 'Webhooks', component: WebhooksSection, isOfAll: true },
  settings: { title: 'Settings', component: SettingsSection, isOfAll: true },
};

/** @param {{ place: import('../router.js').Place }} props */
export const OperatePage = ({ place }) => {
  const offered = Object.entries(SECTIONS).filter(([, section]) => isOfAll() || !section.isOfAll);
  const chosen = offered.find(([name]) => name === place.id) ?? offered[0];
  if (chosen === undefined) return null;
  const [current, section] = chosen;
  return html`<h1>Operate</h1>
    <nav class="sections" aria-label="Sections"><ul>
      <${Links} root="/console/operate" pages=${offered} current=${current} />
    </ul></nav>
    <${section.component} />`;
};
