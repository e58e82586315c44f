/** The files under docs/ that are made from the routes: by path, as they have to be. */
import { errorsPage } from '../errors-page.ts';
import { type DocumentForm, documentOf } from './document.ts';
import { MERCHANT_RUNS } from './record.ts';
import { AUDIT_RUNS } from './record-audit.ts';
import { recordRuns } from './run.ts';

const MERCHANT: DocumentForm = {
  title: 'Payments',
  description:
    'Card payments: authorize, capture, void, refund. Amounts are integers in minor units. The contract in words is docs/interface.md; what each error means and what to do is at [/docs/errors](/docs/errors).',
  tags: {
    Payments: 'The contract',
    'Additions to the contract': 'What the service offers beside the contract',
    Webhooks: 'What happens to payments, sent to the merchant: docs/webhooks.md',
  },
};

const AUDITOR: DocumentForm = {
  title: 'Payments: audit and operations',
  description:
    'What happened, and proof of it (scope `audit:read`); what has to be looked after (scope `ops:admin`, resolving by hand `ops:resolve`). A token of one merchant sees that merchant alone, one with merchant `*` sees all. Errors are those of [/docs/errors](/docs/errors).',
  tags: {
    Audit: 'Scope audit:read',
    Operations: 'Scopes ops:admin and ops:resolve; what a provider sends is signed',
  },
};

const asText = (document: object): string => `${JSON.stringify(document, null, 2)}\n`;

/** Runs the service for the examples: one to two seconds, most of them spent waiting. */
export const generatedDocs = async (): Promise<Record<string, string>> => ({
  'docs/openapi.json': asText(documentOf(MERCHANT, await recordRuns('merchant', MERCHANT_RUNS))),
  'docs/openapi-audit.json': asText(documentOf(AUDITOR, await recordRuns('auditor', AUDIT_RUNS))),
  'docs/errors.md': errorsPage(),
});
