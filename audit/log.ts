/** The log after a position: in pages, as an export, and live. */
import type { z } from 'zod';
import { formReason, logHashes } from '../shared/event-store/chain.ts';
import { decode } from '../shared/event-store/codec.ts';
import { StoreUnavailable } from '../shared/event-store/errors.ts';
import type {
  LogEvent,
  LogJob,
  LogReader,
  Position,
  StoredForm,
} from '../shared/event-store/port.ts';
import { logPages, scanLog } from '../shared/event-store/scan-log.ts';
import { serverSent } from '../shared/http/server/streams.ts';
import { PAGE_BYTES_MAX } from '../shared/read-models/pages.ts';
import { type JobTools, resultOf } from '../shared/runtime/jobs.ts';
import { jsonFieldsOf } from '../shared/runtime/json.ts';
import { slicesOf } from '../shared/runtime/scheduling.ts';
import { breakOfForm } from './breaks.ts';
import type { AuditBreak } from './contract.ts';
import { breakLine, type ExportTotals, startLines } from './export-lines.ts';
import { auditEvent } from './history.ts';
import { createMerchantLookup, type MerchantDocuments } from './merchants.ts';
import { type LogParameters, startOf } from './parameters.ts';

type Args = { requested: LogRequest; only: string | undefined };

type Deps = { store: LogReader; readModels: MerchantDocuments };

/** Characters handed over at once: each time costs the reader a message. */
const TEXT_MIN = 64 * 1024;

export const exportTexts = (
  { store, readModels }: Deps,
  args: Args,
  signal?: AbortSignal,
): AsyncGenerator<string, ExportTotals> =>
  scanLog(store, exportLog, args, { calls: { getAny: readModels.getAny }, signal });

/** The JSON text of a page. Throws RangeError for a wrong `from`, and StoreUnavailable. */
export const pageText = ({ store, readModels }: Deps, args: Args): Promise<string> =>
  resultOf(scanLog(store, readLogPage, args, { calls: { getAny: readModels.getAny } }));

export type LogRequest = z.output<typeof LogParameters>;

const PAGE = 250;
export const LIMIT = 100;
/** The most events that one request reads, where most are of other merchants. */
const READ_MAX = 10_000;

/** An event with no time, or perhaps a changed one, is part of every span. */
const fits = (form: StoredForm, { fromTime, toTime }: LogRequest): boolean => {
  if ((fromTime ?? toTime) === undefined) return true;
  const { time } = jsonFieldsOf(form.text);
  if (typeof time !== 'string') return true;
  const isIn = time >= (fromTime ?? time) && (toTime === undefined || time < toTime);
  return isIn || formReason(form) !== undefined;
};

const checked = (form: StoredForm) => {
  const reason = formReason(form);
  const shown = auditEvent(decode(form));
  return reason === undefined ? shown : { ...shown, broken: reason };
};

/** Writing the JSON text is a part of the work. */
export const readLogPage: LogJob<Args, never, string, MerchantDocuments> = async (
  log,
  { requested, only },
  { calls },
) => {
  const merchants = createMerchantLookup(log, calls);
  const limit = requested.limit ?? LIMIT;
  const events: ReturnType<typeof checked>[] = [];
  let bytes = 0;
  const isFull = (): boolean => events.length >= limit || bytes >= PAGE_BYTES_MAX;
  let broken: AuditBreak | undefined;
  let next = startOf(requested.from);
  const end = await log.end();
  // A page may then look at more events than it shows.
  const isPart = (only ?? requested.fromTime ?? requested.toTime) !== undefined;
  const take = (form: StoredForm): void => {
    const event = checked(form);
    events.push(event);
    bytes += Buffer.byteLength(form.text);
    if (event.broken !== undefined) broken ??= breakOfForm(form, event.broken);
  };
  let atEnd = next === end;
  for (let read = 0; read < READ_MAX && !isFull() && !atEnd; read += PAGE) {
    const size = isPart ? PAGE : Math.min(PAGE, limit - events.length);
    const page = await log.stored.readAll(next, size, end);
    for await (const slice of slicesOf(page)) {
      for (const form of slice) {
        if (isFull()) break;
        const isVisible = only === undefined || (await merchants.ofForm(form)) === only;
        next = form.position;
        if (isVisible && fits(form, requested)) take(form);
      }
    }
    atEnd = next === end || page.length === 0;
  }
  return JSON.stringify({ events, broken, next, atEnd });
};

export async function* linesOf(
  forms: readonly StoredForm[],
  broken: AuditBreak | undefined,
): AsyncGenerator<string, ExportTotals> {
  const lines = startLines();
  for (const form of forms) {
    yield lines.next(form);
    if (form.position === broken?.position) yield `${breakLine(broken)}\n`;
  }
  if (broken?.position !== '') return lines.totals();
  // A removed stream has no line that it could follow.
  yield `${breakLine(broken)}\n`;
  return lines.totals([broken]);
}

/** Up to the log's end when the export began. Throws Error once `signal` is aborted. */
export const exportLog: LogJob<Args, string, ExportTotals, MerchantDocuments> = async function* (
  log,
  { requested, only },
  { signal, calls },
) {
  const merchants = createMerchantLookup(log, calls);
  const after = startOf(requested.from);
  const end = await log.end();
  let wanted = requested.limit ?? Number.POSITIVE_INFINITY;
  // From the start of the log its hashes are known, whether the store keeps them or not.
  const linked = after === null ? logHashes() : (form: StoredForm) => form;
  const lines = startLines();
  const unread: AuditBreak[] = [];
  let text = '';
  for await (const { page, unreadable } of logPages(log.stored, after, end, signal)) {
    for await (const slice of slicesOf(page.map(linked))) {
      for (const form of slice) {
        if (!fits(form, requested)) continue;
        if (only !== undefined && (await merchants.ofForm(form)) !== only) continue;
        wanted -= 1;
        text += lines.next(form);
        const reason = formReason(form);
        if (reason !== undefined) text += `${breakLine(breakOfForm(form, reason))}\n`;
        if (wanted > 0 && text.length < TEXT_MIN) continue;
        yield text;
        if (wanted === 0) return lines.totals();
        text = '';
      }
    }
    if (unreadable === undefined) continue;
    unread.push(unreadable);
    text += `${breakLine(unreadable)}\n`;
  }
  if (signal.aborted) throw new Error('the export was aborted');
  if (text !== '') yield text;
  return lines.totals(unread);
};

export const eventText = (event: LogEvent): string => {
  const shown = auditEvent(event);
  return serverSent('type' in shown ? shown.type : 'unreadable', shown, event.position);
};

export type PastArgs = { only: string | undefined; after: Position | null; end: Position };

export async function* pastTexts(
  log: LogReader,
  { only, after, end }: PastArgs,
  { signal, calls }: JobTools<MerchantDocuments>,
  textOf: (event: LogEvent) => string | Promise<string>,
): AsyncGenerator<string, void> {
  const merchants = createMerchantLookup(log, calls);
  for await (const { page, unreadable } of logPages(log.stored, after, end, signal)) {
    let text = '';
    for (const form of page)
      if (only === undefined || (await merchants.ofForm(form)) === only)
        text += await textOf(decode(form));
    if (text !== '') yield text;
    if (unreadable !== undefined) throw new StoreUnavailable(unreadable.reason);
  }
}

export const pastEvents: LogJob<PastArgs, string, void, MerchantDocuments> = (log, args, tools) =>
  pastTexts(log, args, tools, eventText);
