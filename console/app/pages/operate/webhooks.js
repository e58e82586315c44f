/** The webhook endpoints of all merchants. */
import { ALL_ENDPOINTS, Endpoints } from '../../endpoints.js';
import { html } from '../../html.js';

export const WebhooksSection = () =>
  html`<h2>Webhook endpoints</h2><${Endpoints} base=${ALL_ENDPOINTS} />`;
