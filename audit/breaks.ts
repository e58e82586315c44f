/** An acknowledgement of a break is an event of the log itself, so that an export holds it too. */
import { breakAt, hashOf } from '../shared/event-store/chain.ts';
import { decode } from '../shared/event-store/codec.ts';
import type { Position, StoredForm } from '../shared/event-store/port.ts';
import { ACKNOWLEDGEMENT_STREAMS } from '../shared/payment/audit-events.ts';
import type { AuditBreak } from './contract.ts';

export type LogBreak = AuditBreak;

type AcknowledgedBreak = { actor: string; time: string; note: string };

/** Plain data, because threads pass it on. `kept` are the first breaks of `count`. */
export type BreaksMet<B extends LogBreak = LogBreak> = {
  count: number;
  kept: B[];
  acknowledgements: [break_: string, by: AcknowledgedBreak][];
};

/**
 * `count` breaks are not acknowledged; `named` has the first of them, those of a changed log before the others.
 * At `unreadable` and `unsealed` ones the chain holds (gaps §25); each is left out for none.
 */
export type LogBreaks<B extends LogBreak = LogBreak> = {
  count: number;
  unreadable?: number | undefined;
  unsealed?: number | undefined;
  named: B[];
  acknowledged: (B & AcknowledgedBreak)[];
};

export type NamedBreaks = Pick<LogBreaks, 'count' | 'unreadable' | 'named'>;

/** Part of stored acknowledgements, so they never change. */
const UNREADABLE = 'it cannot be read: ';
const UNSEALED = ' without another: seals were taken out, or the service could make none';

export const unreadableReason = (why: string): string => `${UNREADABLE}${why}`;
export const unsealedReason = (eventsMax: number, position: Position): string =>
  `more than ${eventsMax} events follow the seal of position ${position}${UNSEALED}`;

/** Of the last seal before a missing one. */
export const sealBefore = ({ reason }: Pick<LogBreak, 'reason'>): string | undefined =>
  /the seal of position (\S+) without another/.exec(reason)?.[1];

const isUnreadable = ({ reason }: Pick<LogBreak, 'reason'>): boolean =>
  reason.startsWith(UNREADABLE);

/** The word that `payments verify` begins with (gaps §25). */
export const findingOf = ({
  count,
  unreadable = 0,
  unsealed = 0,
}: Pick<LogBreaks, 'count' | 'unreadable' | 'unsealed'>): 'INTACT' | 'BROKEN' | 'INCOMPLETE' => {
  if (count === 0) return 'INTACT';
  return count > unreadable + unsealed ? 'BROKEN' : 'INCOMPLETE';
};

/** Those of a log that was changed: an event that cannot be read needs a person by itself (gaps §25). */
export const changesIn = ({
  count,
  unreadable = 0,
  named,
}: NamedBreaks): Pick<LogBreaks, 'count' | 'named'> => ({
  count: count - unreadable,
  named: named.slice(0, count - unreadable),
});

/** A log with more breaks than can be acknowledged stays broken. */
const KEPT_MAX = 10_000;
const NAMED_MAX = 100;

export const breakOfForm = (
  form: Pick<StoredForm, 'position' | 'stream' | 'revision' | 'text'>,
  reason: string,
): LogBreak => ({ ...breakAt(form, reason), digest: hashOf(form.text) });

type Named = Pick<LogBreak, 'stream' | 'revision' | 'reason' | 'digest'>;

/** Equal for the same break of two verifications. */
export const breakKeyOf = ({ stream, revision, reason, digest = '' }: Named): string =>
  JSON.stringify([stream, revision, reason, digest]);

export const meetBreaks = <B extends LogBreak = LogBreak>() => {
  const met: BreaksMet<B> = { count: 0, kept: [], acknowledgements: [] };
  return {
    met,
    note: (broken: B): void => {
      met.count += 1;
      if (met.kept.length < KEPT_MAX) met.kept.push(broken);
    },
    pass: (form: Omit<StoredForm, 'id'>): void => {
      if (!form.stream.startsWith(ACKNOWLEDGEMENT_STREAMS)) return;
      const recorded = decode(form);
      if ('unreadable' in recorded || recorded.event.type !== 'LogBreakAcknowledged') return;
      const { time, context, event } = recorded;
      const { note } = event.data;
      if (met.acknowledgements.length < KEPT_MAX)
        met.acknowledgements.push([breakKeyOf(event.data), { actor: context.actor, time, note }]);
    },
  };
};

export const judgeBreaks = <B extends LogBreak = LogBreak>(
  { count, kept, acknowledgements }: BreaksMet<B>,
  beside: readonly B[] = [],
): LogBreaks<B> => {
  const by = new Map(acknowledgements);
  const left: B[] = [];
  const acknowledged: LogBreaks<B>['acknowledged'] = [];
  for (const broken of [...kept, ...beside]) {
    const said = by.get(breakKeyOf(broken));
    if (said !== undefined) acknowledged.push({ ...broken, ...said });
    else left.push(broken);
  }
  const unreadable = left.filter(isUnreadable);
  const rest = left.filter((broken) => !isUnreadable(broken));
  const unsealed = rest.filter(({ reason }) => reason.endsWith(UNSEALED));
  return {
    count: count + beside.length - acknowledged.length,
    ...(unreadable.length > 0 && { unreadable: unreadable.length }),
    ...(unsealed.length > 0 && { unsealed: unsealed.length }),
    named: [...rest, ...unreadable].slice(0, NAMED_MAX),
    acknowledged,
  };
};
