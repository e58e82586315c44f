/** Operate: what waits for a person, and what an operator can start. */
import { html } from '../html.js';
import { isOfAll } from '../session.js';
import { MessagesSection } from './operate/messages.js';
import { ParkedSection } from './operate/parked.js';
import { RebuildSection } from './operate/rebuild.js';
import { ReconcileSection } from './operate/reconcile.js';
import { SettingsSection } from './operate/settings.js';
import { UnresolvedSection } from './operate/unresolved.js';
import { WebhooksSection } from './operate/webhooks.js';

const SECTIONS = {
  unresolved: { title: 'Unresolved', component: UnresolvedSection, isOfAll: false },
  parked: { title: 'Parked and topics', component: ParkedSection, isOfAll: false },
  rebuild: { title: 'Read models', component: RebuildSection, isOfAll: true },
  reconcile: { title: 'Reconcile', component: ReconcileSection, isOfAll: true },
  webhooks: { title: 'Webhooks', component: WebhooksSection, isOfAll: true },
  settings: { title: 'Settings', component: SettingsSection, isOfAll: true },
};

/** Sections that are reached from another one, by their names. */
const WITHIN = { messages: { within: 'parked', component: MessagesSection } };

/** @param {{ place: import('../router.js').Place }} props */
export const OperatePage = ({ place }) => {
  const offered = Object.entries(SECTIONS).filter(([, section]) => isOfAll() || !section.isOfAll);
  const inner = isOfAll() && place.id === 'messages' ? WITHIN.messages : undefined;
  const chosen = offered.find(([name]) => name === (inner?.within ?? place.id)) ?? offered[0];
  if (chosen === undefined) return null;
  const [current, section] = chosen;
  return html`<h1>Operate</h1>
    <nav class="sections" aria-label="Sections"><ul>
      ${offered.map(
        ([name, { title }]) =>
          html`<li><a href=${`/console/operate/${name}`} aria-current=${name === current ? 'page' : undefined}>${title}</a></li>`,
      )}
    </ul></nav>
    <${(inner ?? section).component} place=${place} />`;
};
