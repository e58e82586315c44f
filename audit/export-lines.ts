/**
 * An export's lines (docs/audit.md), for the server and `payments verify --file`. Each holds a stored event and
 * a hash over itself and the line before, which places a changed, missing, added or swapped line.
 */
import { createHash, hash } from 'node:crypto';
import type { StoredForm } from '../shared/event-store/port.ts';
import { jsonFieldsOf, jsonValueOf } from '../shared/runtime/json.ts';
import { AuditBreak } from './contract.ts';
import { type Manifest, manifestShape } from './manifest.ts';

export const LINES_START = '0'.repeat(64);

/** Stream and revision are those that the text names, where it is JSON. */
export type ExportLine = Omit<StoredForm, 'id' | 'logHashBefore'> & {
  /** SHA-256 in hex over the chain value before it and the line up to here. */
  chain: string;
};

const isJson = (text: string): boolean => !text.includes('\n') && jsonValueOf(text) !== undefined;

/** A text that is no JSON stands in it as a string, with the event's place. */
const bodyOf = (form: Omit<ExportLine, 'chain'>): string => {
  const { position, hash: eventHash, logHash, stream, revision, text } = form;
  const log = logHash === undefined ? '' : `,"logHash":${JSON.stringify(logHash)}`;
  const head = `{"position":${JSON.stringify(position)},"hash":${JSON.stringify(eventHash)}${log}`;
  if (isJson(text)) return `${head},"event":${text}`;
  const place = `"stream":${JSON.stringify(stream)},"revision":${JSON.stringify(revision)}`;
  return `${head},${place},"text":${JSON.stringify(text)}`;
};

const chainOf = (before: string, body: string): string => hash('sha256', before + body);

export const exportLine = (form: StoredForm, before: string): { line: string; chain: string } => {
  const body = bodyOf(form);
  const chain = chainOf(before, body);
  return { line: `${body},"chain":"${chain}"}`, chain };
};

const isText = (value: unknown): value is string => typeof value === 'string';

const EVENT = ',"event":';

const textIn = (line: string, { text }: Record<string, unknown>, suffix: string): string =>
  isText(text) ? text : line.slice(line.indexOf(EVENT) + EVENT.length, -suffix.length);

/** Undefined where the line is not, to the byte, what `exportLine` would write. */
export const readExportLine = (line: string): ExportLine | undefined => {
  const fields = jsonFieldsOf(line);
  const { position, hash: eventHash, logHash, chain } = fields;
  if (!isText(position) || !isText(eventHash) || !isText(chain)) return undefined;
  if (logHash !== undefined && !isText(logHash)) return undefined;
  const { stream = '', revision = -1 } = isText(fields.text) ? fields : Object(fields.event);
  const suffix = `,"chain":${JSON.stringify(chain)}}`;
  const read = {
    position,
    stream: String(stream),
    revision: Number(revision),
    hash: eventHash,
    ...(logHash === undefined ? {} : { logHash }),
    text: textIn(line, fields, suffix),
    chain,
  };
  return line === bodyOf(read) + suffix ? read : undefined;
};

export const expectedChain = (line: ExportLine, before: string): string =>
  chainOf(before, bodyOf(line));

/** After each event that does not verify; at the end for removed streams, or where reading ends. */
export const breakLine = (broken: AuditBreak): string => JSON.stringify({ broken });

export const readBreakLine = (line: string): AuditBreak | undefined => {
  const read = AuditBreak.safeParse(jsonFieldsOf(line).broken);
  return read.success ? read.data : undefined;
};

const headOf = ({ text: _, chain: __, ...head }: ExportLine) => head;

/** What a manifest says of the lines of events, and the breaks at none; plain data, because threads pass it on. */
export type ExportTotals = Pick<
  Manifest,
  'count' | 'first' | 'head' | 'chain' | 'bytes' | 'sha256'
> & { breaks: AuditBreak[] };

export const startLines = () => {
  const sha256 = createHash('sha256');
  let [count, bytes, chain, line] = [0, 0, LINES_START, ''];
  let first: ExportTotals['first'] = null;
  return {
    next: (form: StoredForm): string => {
      ({ line, chain } = exportLine(form, chain));
      const ended = `${line}\n`;
      sha256.update(ended);
      bytes += Buffer.byteLength(ended);
      count += 1;
      first ??= { position: form.position };
      return ended;
    },
    totals: (breaks: AuditBreak[] = []): ExportTotals => {
      const last = readExportLine(line);
      const head = last === undefined ? null : headOf(last);
      return { count, first, head, breaks, chain, bytes, sha256: sha256.digest('hex') };
    },
  };
};

/** The last line of an export, which is in neither its count nor its digest (gaps §25). */
export const manifestLine = (manifest: Manifest): string => JSON.stringify({ manifest });

export const readManifestLine = (line: string): Manifest | undefined =>
  manifestShape.safeParse(jsonFieldsOf(line).manifest).data;

/** What an export holds completely: the log, each of its streams, or neither. */
export type Completeness = Manifest['completeness'];

export const COMPLETENESS_HEADER = 'export-completeness';
/** The guarantee of the store's chains: `log` or `stream`. */
export const GUARANTEE_HEADER = 'export-guarantee';
export const LOG_HEADER = 'export-log';
/** The one merchant whose events it holds, percent-encoded. */
export const MERCHANT_HEADER = 'export-merchant';
