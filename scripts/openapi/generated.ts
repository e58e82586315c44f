/** The files under docs/ that are made from the routes: by path, as they have to be. */
import { ROUTES } from '../../shared/http/route-table.ts';
import { errorsPage } from '../errors-page.ts';
import { type DocumentForm, documentOf } from './document.ts';
import { MERCHANT_RUNS } from './record.ts';
import { AUDIT_RUNS } from './record-audit.ts';
import { recordRuns } from './run.ts';
import { stableAuditBodies, stableMerchantBodies } from './stable.ts';

const MERCHANT: DocumentForm<'Payments' | 'Additions to the contract'> = {
  info: {
    title: 'Payments',
    description:
      'Card payments: authorize, capture, void, refund. Amounts are integers in minor units. The contract in words is docs/interface.md; what each error means and what to do is at [/docs/errors](/docs/errors).',
  },
  tags: {
    Payments: 'The contract',
    'Additions to the contract': 'What the service offers beside the contract',
  },
  tagOf: (id) => {
    if (!ROUTES[id].scope.startsWith('payments:')) return undefined;
    return id === 'listPayments' ? 'Additions to the contract' : 'Payments';
  },
};

const AUDITOR: DocumentForm<'Audit' | 'Operations'> = {
  info: {
    title: 'Payments: audit and operations',
    description:
      'What happened, and proof of it (scope `audit:read`); what has to be looked after (scope `ops:admin`). A token of one merchant sees that merchant alone, one with merchant `*` sees all. Errors are those of [/docs/errors](/docs/errors).',
  },
  tags: { Audit: 'Scope audit:read', Operations: 'Scope ops:admin' },
  tagOf: (id) => {
    const place = ROUTES[id];
    if (!('summary' in place) || place.scope.startsWith('payments:')) return undefined;
    return place.scope === 'audit:read' ? 'Audit' : 'Operations';
  },
};

const asText = (document: object): string => `${JSON.stringify(document, null, 2)}\n`;

/** Runs the service for the examples: one to two seconds, most of them spent waiting. */
export const generatedDocs = async (): Promise<Record<string, string>> => {
  const merchant = await recordRuns('merchant', stableMerchantBodies(), MERCHANT_RUNS);
  const auditor = await recordRuns('auditor', stableAuditBodies(), AUDIT_RUNS);
  return {
    'docs/openapi.json': asText(documentOf(MERCHANT, merchant)),
    'docs/openapi-audit.json': asText(documentOf(AUDITOR, auditor)),
    'docs/errors.md': errorsPage(),
  };
};
