/**
 * The service's own streams: seals, the check of the secret, acknowledgements, webhook endpoints. At a shared
 * server others may write into them (gaps §29): readers pass over foreign events, and write behind them.
 */
import type { DomainEvent } from '../payment/events.ts';
import { onError } from '../runtime/error-text.ts';
import { newEventId } from '../runtime/ids.ts';
import { jsonFieldsOf } from '../runtime/json.ts';
import { mapInSlices } from '../runtime/scheduling.ts';
import { GENESIS_HASH, hashReason, isOursAfter } from './chain.ts';
import { allReadable, decode, expectedAfter, timeAfter } from './codec.ts';
import {
  AppendOutcomeUnknown,
  ControlNotWhole,
  StreamNotWhole,
  UnreadableStream,
} from './errors.ts';
import type { EventContext, EventStore, Expected, RecordedEvent, StoredForm } from './port.ts';

export type ControlReads = Pick<EventStore, 'stored' | 'readStream' | 'lastRevision'>;

export type WholeReads = Pick<ControlReads, 'stored' | 'lastRevision'>;

/** `end`: the place of the next event, behind the last one of the stream, of others too. */
export type ControlStream = { events: RecordedEvent[]; end: Expected };

export const NO_EVENTS: ControlStream = { events: [], end: 'none' };

/** Each event of ours names our last one. Throws UnreadableStream where the named one's text has changed. */
export const ownForms = (forms: readonly StoredForm[]): { own: StoredForm[]; end: Expected } => {
  let hash = GENESIS_HASH;
  const changed = new Set<string>();
  const own = forms.filter((form) => {
    if (isOursAfter(form, hash)) {
      ({ hash } = form);
      return true;
    }
    const { stream, revision } = form;
    const before = String(jsonFieldsOf(form.text).previousHash);
    if (changed.has(before) && isOursAfter(form, before))
      throw new UnreadableStream(`${stream}, revision ${revision}: it follows a changed event`);
    if (form.hash !== '' && hashReason(form) !== undefined) changed.add(form.hash);
    return false;
  });
  const last = forms.at(-1);
  return { own, end: expectedAfter(last && { revision: last.revision, hash }) };
};

/** Throws ControlNotWhole where it was deleted or cut, and StoreUnavailable. */
export const wholeForms = async ({ stored, lastRevision }: WholeReads, stream: string) => {
  try {
    const forms = await stored.readStream(stream);
    // Throws for a stream that was deleted, which reads like one that never was.
    if (forms.length === 0) await lastRevision(stream);
    const first = forms[0]?.revision ?? 0;
    if (first > 0) throw new StreamNotWhole(stream, `begins at revision ${first}`);
    return forms;
  } catch (error) {
    throw error instanceof StreamNotWhole ? new ControlNotWhole(stream, error.why) : error;
  }
};

/** Throws ControlNotWhole (deleted or cut), UnreadableStream (an event of ours) and StoreUnavailable. */
export const readControl = async (store: ControlReads, stream: string): Promise<ControlStream> => {
  if (store.stored.guarantee === 'log') {
    // The service alone writes this log: what is not ours there is damage.
    const events = await store.readStream(stream);
    return { events, end: expectedAfter(events.at(-1)) };
  }
  const { own, end } = ownForms(await wholeForms(store, stream));
  return { events: allReadable(await mapInSlices(own, (form) => decode(form))), end };
};

/** Repeats an append of unknown outcome once as it is, which stores nothing twice. Throws as `append`. */
export const appendControl = (
  store: Pick<EventStore, 'append'>,
  stream: string,
  { events: before, end }: ControlStream,
  events: readonly DomainEvent[],
  context: EventContext,
): Promise<RecordedEvent[]> => {
  const time = timeAfter(before.at(-1));
  const batch = events.map((event) => ({ id: newEventId(), time, event, context }));
  const append = () => store.append(stream, end, batch);
  return append().catch(onError(AppendOutcomeUnknown, append));
};
