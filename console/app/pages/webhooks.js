/** My webhooks: the endpoints of the token's merchant. */
import { Endpoints, OWN_ENDPOINTS } from '../endpoints.js';
import { html } from '../html.js';

export const WebhooksPage = () => html`<h1>My webhooks</h1><${Endpoints} base=${OWN_ENDPOINTS} />`;
