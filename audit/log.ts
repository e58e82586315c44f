/** Everything from a position: as pages, as an export, and live. */
import { setImmediate as turn } from 'node:timers/promises';
import type { z } from 'zod';
import type {
  Position,
  RecordedEvent,
  StoredForm,
  StoredForms,
  SubscriptionItem,
  UnreadableEvent,
} from '../shared/event-store/port.ts';
import { serverSent } from '../shared/http/server/streams.ts';
import type { LogParameters } from './contract.ts';
import { type AuditDeps, startOf } from './deps.ts';
import { exportLine, LINES_START } from './export-lines.ts';
import { auditEvent } from './history.ts';

type AnyEvent = RecordedEvent | UnreadableEvent;
type Deps = Pick<AuditDeps, 'store' | 'merchants'>;
/** What of the log is wanted. */
export type LogRequest = z.output<typeof LogParameters>;

const PAGE = 250;
const LIMIT = 100;
/** What one request looks through at most, where most of the log is not the caller's. */
const LOOKED_AT_MAX = 10_000;

const timeOf = (form: StoredForm): string => {
  try {
    return String(Object(JSON.parse(form.text)).time);
  } catch {
    return '';
  }
};

const inSpan = (time: string, { fromTime, toTime }: LogRequest): boolean =>
  (fromTime === undefined || time >= fromTime) && (toTime === undefined || time < toTime);

/** An event that cannot be read has no time, and is shown whatever was asked for. */
const fits = (event: AnyEvent, requested: LogRequest): boolean =>
  'unreadable' in event || inSpan(event.time, requested);

/** A page of the log. Throws RangeError for a `from` that is no position. */
export const logPage = async (
  { store, merchants }: Deps,
  requested: LogRequest,
  only: string | undefined,
) => {
  const limit = requested.limit ?? LIMIT;
  const events: AnyEvent[] = [];
  let next = startOf(requested.from);
  for (let looked = 0; looked < LOOKED_AT_MAX; looked += PAGE) {
    const page = await store.readAll(next, PAGE);
    for (const event of page) {
      const own = only === undefined || (await merchants.of(event)) === only;
      next = event.position;
      if (own && fits(event, requested)) events.push(event);
      if (events.length === limit) {
        const atEnd = (await store.head(next)).eventsAfter === 0;
        return { events: events.map((one) => auditEvent(one)), next, atEnd };
      }
    }
    if (page.length < PAGE) {
      return { events: events.map((one) => auditEvent(one)), next, atEnd: true };
    }
  }
  return { events: events.map((one) => auditEvent(one)), next, atEnd: false };
};

/** The lines of an export of events that have been read already: one payment's. */
export async function* linesOf(forms: readonly StoredForm[]): AsyncGenerator<string> {
  let chain = LINES_START;
  for (const form of forms) {
    const made = exportLine(form, chain);
    chain = made.chain;
    yield `${made.line}\n`;
  }
}

/** The lines of an export of the log, up to where it ended when the export began. */
export async function* logLines(
  { store, merchants }: Deps,
  stored: StoredForms,
  requested: LogRequest,
  only: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<string> {
  let after = startOf(requested.from);
  let left = (await store.head(after)).eventsAfter;
  let wanted = requested.limit ?? Number.POSITIVE_INFINITY;
  let chain = LINES_START;
  while (left > 0 && wanted > 0) {
    if (signal.aborted) throw new Error('the export was broken off');
    const page: StoredForm[] = await stored.readAll(after, Math.min(PAGE, left));
    if (page.length === 0) return;
    for (const form of page) {
      if (wanted === 0 || !inSpan(timeOf(form), requested)) continue;
      if (only !== undefined && (await merchants.ofForm(form)) !== only) continue;
      const made = exportLine(form, chain);
      chain = made.chain;
      wanted -= 1;
      yield `${made.line}\n`;
    }
    left -= page.length;
    after = page.at(-1)?.position ?? after;
    await turn();
  }
}

/** The subscription once its first item is there. Rejects with RangeError for no position. */
export const openSubscription = async (
  { store }: Deps,
  after: Position | null,
  signal: AbortSignal,
): Promise<AsyncGenerator<SubscriptionItem>> => {
  const items = store.subscribe(after, signal)[Symbol.asyncIterator]();
  const first = await items.next();
  return (async function* () {
    let item = first;
    while (item.done !== true) {
      yield item.value;
      item = await items.next();
    }
  })();
};

/** How soon a client should come back after a drop, in milliseconds. */
const RETRY = 'retry: 1000\n\n';

/** What a live client gets: every event with its position as id, and where it has caught up. */
export async function* liveTexts(
  { merchants }: Deps,
  items: AsyncGenerator<SubscriptionItem>,
  after: Position | null,
  only: string | undefined,
): AsyncGenerator<string> {
  let last = after;
  // Told of every catch-up, a merchant would see how much others have to do.
  let isNews = true;
  yield RETRY;
  for await (const item of items) {
    if (item.kind === 'caught-up') {
      if (only !== undefined && !isNews) continue;
      isNews = false;
      // With its position, so that who began at `now` can come back before the first event.
      yield serverSent('caught-up', {}, last ?? undefined);
      continue;
    }
    last = item.events.at(-1)?.position ?? last;
    for (const event of item.events) {
      if (only !== undefined && (await merchants.of(event)) !== only) continue;
      isNews = true;
      const shown = auditEvent(event);
      yield serverSent('type' in shown ? shown.type : 'unreadable', shown, event.position);
    }
  }
}
