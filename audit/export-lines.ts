/**
 * The lines of an export. Each holds an event as it is stored and a hash over itself and the line
 * before it, so a changed, missing, added or swapped line is found with its place. The server and
 * `payments verify --file` use this form; docs/audit.md describes it.
 */
import { hash } from 'node:crypto';
import type { StoredForm } from '../shared/event-store/port.ts';
import { jsonFieldsOf } from '../shared/runtime/json-fields.ts';

/** The chain value before the first line. */
export const LINES_START = '0'.repeat(64);

/** The parts of a line. */
export type ExportLine = Pick<StoredForm, 'position' | 'hash' | 'logHash' | 'text'> & {
  /** SHA-256 in hex over the chain value before it and the line up to here. */
  chain: string;
};

const prefixOf = ({
  position,
  hash: eventHash,
  logHash,
}: Omit<ExportLine, 'text' | 'chain'>): string => {
  const log = logHash === undefined ? '' : `,"logHash":${JSON.stringify(logHash)}`;
  return `{"position":${JSON.stringify(position)},"hash":${JSON.stringify(eventHash)}${log},"event":`;
};

const chainOf = (before: string, body: string): string => hash('sha256', before + body);

/** The line of an event without its line break, and the chain value for the next one. */
export const exportLine = (form: StoredForm, before: string): { line: string; chain: string } => {
  const body = prefixOf(form) + form.text;
  const chain = chainOf(before, body);
  return { line: `${body},"chain":"${chain}"}`, chain };
};

const isText = (value: unknown): value is string => typeof value === 'string';

/** The parts of a line; undefined where the line is not, to the byte, what `exportLine` would write. */
export const readExportLine = (line: string): ExportLine | undefined => {
  const { position, hash: eventHash, logHash, chain } = jsonFieldsOf(line);
  if (!isText(position) || !isText(eventHash) || !isText(chain)) return undefined;
  if (logHash !== undefined && !isText(logHash)) return undefined;
  const head = { position, hash: eventHash, ...(logHash === undefined ? {} : { logHash }) };
  const prefix = prefixOf(head);
  const suffix = `,"chain":${JSON.stringify(chain)}}`;
  if (!line.startsWith(prefix) || !line.endsWith(suffix)) return undefined;
  return { ...head, chain, text: line.slice(prefix.length, -suffix.length) };
};

/** The chain value that a line ought to have. */
export const expectedChain = (line: ExportLine, before: string): string =>
  chainOf(before, prefixOf(line) + line.text);

/** What an export holds completely: the log, each of its streams, or neither. */
export type Completeness = 'log' | 'streams' | 'range';

/** The header of an export with its `Completeness`. */
export const COMPLETENESS_HEADER = 'export-completeness';
/** The header of an export with the guarantee of the store's chains: `log` or `stream`. */
export const GUARANTEE_HEADER = 'export-guarantee';
/** The header of an export with the id of its log (log-id.ts). */
export const LOG_HEADER = 'export-log';
/** The header of an export with the one merchant whose events it holds, percent-encoded. */
export const MERCHANT_HEADER = 'export-merchant';

/** The headers that say what an export is of: a head of it can be compared with the same alone. */
export const scopeHeaders = (logId: string, only: string | undefined): Record<string, string> => ({
  [LOG_HEADER]: logId,
  ...(only === undefined ? {} : { [MERCHANT_HEADER]: encodeURIComponent(only.toWellFormed()) }),
});
