/** The settings in effect, and where each comes from. */
import { html } from '../../html.js';
import { ProblemBox, Waiting } from '../../parts.js';
import { useAsk } from '../../use-ask.js';

/** @typedef {import('../../../../command-api/operator/settings.ts').ServiceSettings} Settings */

export const SettingsSection = () => {
  const loaded = useAsk('/ops/v1/settings');
  const value = /** @type {Settings | undefined} */ (loaded.value);
  if (value === undefined) {
    return loaded.problem === undefined
      ? html`<${Waiting} what="the settings" />`
      : html`<${ProblemBox} problem=${loaded.problem} again=${loaded.again} />`;
  }
  const { version, mode, provider, warnings, settings } = value;
  return html`<h2>Settings in effect</h2>
    <p>Version ${version}, ${mode}. ${provider.simulated ? 'The provider is simulated: no money moves.' : `The provider is ${provider.address}.`} Secrets are hidden.</p>
    ${warnings.map((warning) => html`<p class="problem">${warning}</p>`)}
    <div class="scrolls" tabindex="0" role="region" aria-label="Settings"><table><thead><tr><th scope="col">Setting</th><th scope="col">Value</th><th scope="col">From</th></tr></thead>
      <tbody>${settings.map((one) => html`<tr><th scope="row"><code>${one.name}</code></th><td><code>${one.value}</code></td><td>${one.origin}</td></tr>`)}</tbody></table></div>`;
};
