/** Verifies a whole log page by page: its chain, the sums of every payment, and its seals. */
import {
  type ByStream,
  beforeIn,
  breakAt,
  createGenerationsMap,
  logHashes,
  MOVED,
  storedCheck,
} from '../shared/event-store/chain.ts';
import { decode, isReadable, unreadableAt } from '../shared/event-store/codec.ts';
import { StoreFileUnusable } from '../shared/event-store/errors.ts';
import { isOfOther } from '../shared/event-store/fold-stream.ts';
import type {
  Position,
  RecordedEvent,
  StoredForm,
  StoredForms,
  UnreadableEvent,
} from '../shared/event-store/port.ts';
import { logPages, totalUpTo } from '../shared/event-store/scan-log.ts';
import { isPaymentEvent, paymentOf } from '../shared/payment/events.ts';
import { addSums, type PaymentSums } from '../shared/payment/sums.ts';
import { jsonFieldsOf } from '../shared/runtime/json.ts';
import { slicesOf } from '../shared/runtime/scheduling.ts';
import {
  type BreaksMet,
  breakOfForm,
  type LogBreak,
  meetBreaks,
  unreadableReason,
} from './breaks.ts';
import { type SealsAgainst, type SealsFound, sealsCheck } from './seals/seals.ts';

const PROGRESS_PAGES = 16;

/** Takes every event in order; `missing` is asked for at the end. */
type LogCheck = {
  reasonFor(form: StoredForm): string | undefined;
  missing(): LogBreak | undefined;
};

type LogWalk = {
  stored: StoredForms;
  seals?: SealsAgainst;
  /** Left out: every event, by the chain that the store keeps over them. */
  includes?: ((form: StoredForm) => Promise<boolean>) | undefined;
  beside?: LogCheck;
  end: Position | null;
  signal: AbortSignal;
};

const END_IS_GONE = 'the log ended here when this began, and its last events are gone';

/** `of` is estimated where the store does not number its events. */
export type LogProgress = { verified: number; of: number; estimated: boolean };

/** `events` and `last` are those without a break. */
export type LogWalked = {
  events: number;
  erased: number;
  last: StoredForm | undefined;
  breaks: BreaksMet;
  seals: SealsFound;
};

/** Goes on past every break; undefined when `signal` is aborted. Throws StoreUnavailable. */
export async function* walkLog(walk: LogWalk): AsyncGenerator<LogProgress, LogWalked | undefined> {
  const { stored, includes, beside, end, signal } = walk;
  const chain = storedCheck(beforeIn(stored), includes === undefined ? stored.guarantee : 'stream');
  const sums = sumsCheck(stored);
  const seals = sealsCheck(walk.seals ?? {});
  const checks: LogCheck[] = beside === undefined ? [seals] : [seals, beside];
  const linked = logHashes();
  const { met: breaks, note, pass } = meetBreaks();
  let [events, erased, read, pages] = [0, 0, 0, 0];
  let last: StoredForm | undefined;

  const walked = (): LogWalked => ({ events, erased, last, breaks, seals: seals.found() });

  const reasonFor = async (form: StoredForm): Promise<string | undefined> => {
    const named = jsonFieldsOf(form.text);
    const inChain = await chain(form, named);
    // A broken chain makes the sums worthless, of this event and of those after it.
    const event = inChain === undefined ? decode(form, named) : unreadableAt(form, inChain);
    const inSums = await sums(event);
    if (isReadable(event) && event.event.type === 'PaymentPersonalDataErased') erased += 1;
    let reason = inChain ?? inSums;
    // Seals and kept heads need every event's place, also of one that does not fit.
    for (const check of checks) {
      const other = check.reasonFor(form);
      reason ??= other;
    }
    return reason ?? ('unreadable' in event ? unreadableReason(event.unreadable) : undefined);
  };

  const verifyForm = async (form: StoredForm): Promise<void> => {
    const reason = await reasonFor(form).catch((error: unknown) => {
      // A damaged index, which the check of the file names: the walk goes on.
      if (error instanceof StoreFileUnusable) return `its stream cannot be read: ${error.message}`;
      throw error;
    });
    if (reason !== undefined) return note(breakOfForm(form, reason));
    events += 1;
    last = form;
    pass(form);
  };

  for await (const { page, unreadable } of logPages(stored, null, end, signal)) {
    for await (const slice of slicesOf(page.map(linked)))
      for (const form of slice)
        if (includes === undefined || (await includes(form))) await verifyForm(form);
    if (unreadable !== undefined || page.length === 0) {
      const atEnd = { position: end ?? '', stream: '', revision: 0 };
      note(unreadable ?? breakAt(atEnd, END_IS_GONE));
      return walked();
    }
    read += page.length;
    const at = page.at(-1)?.position ?? null;
    if (at === end || pages % PROGRESS_PAGES === 0) {
      const { total, isExact } = totalUpTo(end, { read, at });
      yield { verified: read, of: total, estimated: !isExact };
    }
    pages += 1;
  }
  if (signal.aborted) return undefined;
  for (const broken of checks.map((check) => check.missing())) if (broken) note(broken);
  return walked();
}

type SumsEvent = Pick<RecordedEvent, 'stream' | 'revision' | 'event'> | UnreadableEvent;

/** After an event that the current code cannot read, a payment's sums are not known. */
type Place = { revision: number; sums: PaymentSums | undefined | 'not known'; reason?: string };

const START: Place = { revision: -1, sums: undefined };
const NOT_KNOWN: Place = { revision: -1, sums: 'not known' };

const step = ({ sums }: Place, event: SumsEvent): Place => {
  const { revision } = event;
  if (sums === 'not known' || !isReadable(event)) return { revision, sums: 'not known' };
  if (!isPaymentEvent(event.event)) return { revision, sums };
  if (isOfOther(event)) return { revision, sums: 'not known', reason: MOVED };
  const added = addSums(sums, event.event);
  if ('sums' in added) return { revision, sums: added.sums };
  return { revision, sums: 'not known', reason: added.reason };
};

/** Any other payment is added up again from its stream. */
const PAYMENTS_KNOWN_MIN = 10_000;

/** In the log's order; one reason for each payment. A stream that begins later is not added up. */
export const sumsOver =
  (places: ByStream<Place> = new Map()) =>
  (event: SumsEvent): string | undefined => {
    const { stream, revision } = event;
    if (paymentOf(stream) === undefined) return undefined;
    const known = places.get(stream) ?? (revision === 0 ? START : NOT_KNOWN);
    if (isReadable(event) && revision <= known.revision) return undefined;
    const place = step(known, event);
    places.set(stream, place);
    return place.reason;
  };

/** Like `sumsOver`, but bounded. Throws StoreUnavailable. */
export const sumsCheck = (stored: Pick<StoredForms, 'readStream'>) => {
  const places = createGenerationsMap<Place>(PAYMENTS_KNOWN_MIN);
  const check = sumsOver(places);
  const readBefore = async (event: SumsEvent): Promise<Place> => {
    const before = await beforeIn(stored)(event);
    if (before.length === 0) return { ...NOT_KNOWN, revision: event.revision - 1 };
    return before.reduce<Place>((place, form) => step(place, decode(form)), START);
  };
  return async (event: SumsEvent): Promise<string | undefined> => {
    const { stream, revision } = event;
    const isKnown = revision === 0 || places.get(stream) !== undefined || !isReadable(event);
    if (!isKnown && paymentOf(stream) !== undefined) places.set(stream, await readBefore(event));
    return check(event);
  };
};
