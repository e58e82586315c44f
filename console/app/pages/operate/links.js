/** Numbers of the operators' pages that lead to what they were made from. */
import { html } from '../../html.js';

/**
 * A revision as the way to the payment at it.
 * @param {{ id: string, revision: number }} props
 */
export const RevisionLink = ({ id, revision }) =>
  html`<a href=${`/console/payments/${encodeURIComponent(id)}?revision=${revision}`} aria-label=${`${id} at revision ${revision}`}>${revision}</a>`;

/**
 * What was made from a payment's events, as the way to the payment.
 * @param {{ id: string, children?: unknown }} props
 */
export const ToPayment = ({ id, children }) =>
  html`<a href=${`/console/payments/${encodeURIComponent(id)}`}>${children}</a>`;
