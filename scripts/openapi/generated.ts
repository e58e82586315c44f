/** The files under docs/ that are made from the routes: by path, as they have to be. */
import { ROUTES } from '../../shared/http/route-table.ts';
import { errorsPage } from '../errors-page.ts';
import { type DocumentForm, documentOf } from './document.ts';
import { recordMerchantApi } from './record.ts';
import { recordAuditApi } from './record-audit.ts';

const PAYMENTS = 'Payments';
const ADDITIONS = 'Additions to the contract';
const AUDIT = 'Audit';
const OPERATIONS = 'Operations';

const MERCHANT: DocumentForm = {
  info: {
    title: 'Payments',
    description:
      'Card payments: authorize, capture, void, refund. Amounts are integers in minor units. The contract in words is docs/interface.md; what each error means and what to do is at [/docs/errors](/docs/errors).',
  },
  tags: {
    [PAYMENTS]: 'The contract',
    [ADDITIONS]: 'What the service offers beside the contract',
  },
  tagOf: (id) => {
    if (!ROUTES[id].scope.startsWith('payments:')) return undefined;
    return id === 'listPayments' ? ADDITIONS : PAYMENTS;
  },
};

const AUDITOR: DocumentForm = {
  info: {
    title: 'Payments: audit and operations',
    description:
      'What happened, and proof of it (scope `audit:read`); what has to be looked after (scope `ops:admin`). A token of one merchant sees that merchant alone, one with merchant `*` sees all. Errors are those of [/docs/errors](/docs/errors).',
  },
  tags: { [AUDIT]: 'Scope audit:read', [OPERATIONS]: 'Scope ops:admin' },
  tagOf: (id) => {
    const place = ROUTES[id];
    if (!('summary' in place) || place.scope.startsWith('payments:')) return undefined;
    return place.scope === 'audit:read' ? AUDIT : OPERATIONS;
  },
};

const asText = (document: object): string => `${JSON.stringify(document, null, 2)}\n`;

/** Runs the service for the examples. */
export const generatedDocs = async (): Promise<Record<string, string>> => ({
  'docs/openapi.json': asText(documentOf(MERCHANT, await recordMerchantApi())),
  'docs/openapi-audit.json': asText(documentOf(AUDITOR, await recordAuditApi())),
  'docs/errors.md': errorsPage(),
});
