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

const INTRO = `# Errors

Every response that is not a success has this body, and a \`Link\` header that leads to the entry below. \`error\` is stable: switch on it, not on \`message\` or \`details\`.

\`\`\`json
{ "error": "INVALID_REQUEST", "message": "The request is invalid.", "details": ["amount is required"], "timestamp": "2026-01-01T12:00:00.000Z" }
\`\`\`

A POST that got no outcome (a timeout, a 500, a 503) is safe to repeat with the same \`Idempotency-Key\`.

A program that repeats a POST of a payment, or gives it up, decides by the header \`Payment-Outcome\` of the 503:

| Payment-Outcome | what is certain | what to do |
|---|---|---|
| \`NOT_CHARGED\` | Nothing was stored or sent, or nothing was carried out, for this request and for each earlier one under its key. | Try again, give the order up, or use another provider. |
| \`UNKNOWN\` | Nothing: money may have moved. | Repeat it with the same \`Idempotency-Key\` after \`Retry-After\` seconds, or read the payment at \`Location\` until it has an outcome. Never send a new payment in its place. |

Without a key it speaks of this request alone. A timeout and a 500 have no such header and mean \`UNKNOWN\`.

| error | status | message |
|---|---|---|`;

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
