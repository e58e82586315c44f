import {
  anchorOf,
  ERROR_CODES,
  ERROR_GUIDE,
  type ErrorEntry,
  messageOf,
  PAYMENT_FAILED,
  statusOf,
} from '../../shared/http/errors.ts';
import { FAILURE_CODES } from '../../shared/payment/fields.ts';
import { type DocumentForm, documentOf, textsOf } from './document.ts';
import { AUDIT_RUNS, MERCHANT_RUNS } from './record.ts';
import { recordRuns } from './run.ts';
import { webhooksIn } from './webhooks.ts';

const FORMS: Record<'merchant' | 'auditor', DocumentForm> = textsOf('documents.yaml');
const MERCHANT = { ...FORMS.merchant, webhooks: webhooksIn };

const INTRO: string = textsOf('documents.yaml').errors;

const anchored = (code: string): string => `[${code}](#${anchorOf(code)})`;

const row = (code: (typeof ERROR_CODES)[number]): string =>
  `| ${anchored(code)} | ${statusOf(code)} | ${messageOf(code)} |`;

const entry = (code: string, status: number, { means, todo, stored }: ErrorEntry): string =>
  `## ${code}\n\nHTTP ${status}. ${means}\n\n- **What to do:** ${todo}\n- **What was stored:** ${stored}\n`;

const errorsPage = (): string =>
  [
    [
      INTRO,
      ...ERROR_CODES.map(row),
      `| ${anchored(PAYMENT_FAILED)} | 402 | no error body: the payment failure response |`,
      '',
    ].join('\n'),
    ...ERROR_CODES.map((code) => entry(code, statusOf(code), ERROR_GUIDE[code])),
    entry(PAYMENT_FAILED, 402, ERROR_GUIDE[PAYMENT_FAILED]),
    `Failure codes: ${FAILURE_CODES.map((code) => `\`${code}\``).join(', ')}.\n`,
  ].join('\n');

const asText = (document: object): string => `${JSON.stringify(document, null, 2)}\n`;

/** The texts by their paths in the project. Runs the service for the examples. */
export const generatedDocs = async (): Promise<Record<string, string>> => ({
  'docs/openapi.json': asText(documentOf(MERCHANT, await recordRuns(MERCHANT_RUNS))),
  'docs/openapi-audit.json': asText(documentOf(FORMS.auditor, await recordRuns(AUDIT_RUNS))),
  'docs/errors.md': errorsPage(),
});
