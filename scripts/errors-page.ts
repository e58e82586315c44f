/** docs/errors.md, made from the entries of shared/http/error-guide.ts. */
import { ERROR_GUIDE, FAILED_ENTRY, PAYMENT_FAILED } from '../shared/http/error-guide.ts';
import { ERROR_CODES, messageOf, statusOf } from '../shared/http/errors.ts';
import { FAILURE_CODES } from '../shared/payment/payment-events.ts';

const INTRO = `# Errors

Every response that is not a success has this body, and a \`Link\` header that leads to the entry below. \`error\` is stable: switch on it, not on \`message\` or \`details\`.

\`\`\`json
{ "error": "INVALID_REQUEST", "message": "The request is invalid.", "details": ["amount is required"], "timestamp": "2026-01-01T12:00:00.000Z" }
\`\`\`

A POST that got no outcome (a timeout, a 500, a 503) is safe to repeat with the same \`Idempotency-Key\`.

| error | status | message |
|---|---|---|`;

const anchored = (code: string): string => `[${code}](#${code.toLowerCase()})`;

const row = (code: (typeof ERROR_CODES)[number]): string =>
  `| ${anchored(code)} | ${statusOf(code)} | ${messageOf(code)} |`;

const entry = (
  code: string,
  status: number,
  { means, todo, stored }: (typeof ERROR_GUIDE)[keyof typeof ERROR_GUIDE],
): string =>
  `## ${code}\n\nHTTP ${status}. ${means}\n\n- **What to do:** ${todo}\n- **What was stored:** ${stored}\n`;

/** The whole text of docs/errors.md. */
export const errorsPage = (): string =>
  [
    [
      INTRO,
      ...ERROR_CODES.map(row),
      `| ${anchored(PAYMENT_FAILED)} | 402 | no error body: the payment failure response |`,
      '',
    ].join('\n'),
    ...ERROR_CODES.map((code) => entry(code, statusOf(code), ERROR_GUIDE[code])),
    entry(PAYMENT_FAILED, 402, FAILED_ENTRY),
    `Failure codes: ${FAILURE_CODES.map((code) => `\`${code}\``).join(', ')}.\n`,
  ].join('\n');
