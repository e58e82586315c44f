/** The files under docs/ that are made from the code: by path, as they have to be. */
import { errorsPage } from '../errors-page.ts';
import { auditDocument } from './audit.ts';
import { merchantDocument } from './merchant.ts';
import { recordMerchantApi } from './record.ts';
import { recordAuditApi } from './record-audit.ts';

const asText = (document: object): string => `${JSON.stringify(document, null, 2)}\n`;

/** Runs the service for the examples. */
export const generatedDocs = async (): Promise<Record<string, string>> => ({
  'docs/openapi.json': asText(merchantDocument(await recordMerchantApi())),
  'docs/openapi-audit.json': asText(auditDocument(await recordAuditApi())),
  'docs/errors.md': errorsPage(),
});
