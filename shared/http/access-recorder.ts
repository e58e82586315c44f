/**
 * Reading is itself recorded, in the log (ADR-0011): who read what and when stands there before
 * the response leaves. A process writes into streams of its own, so it never meets another writer.
 */
import type { FastifyRequest } from 'fastify';
import { expectedAfter, timeAfter } from '../event-store/append-after.ts';
import { AppendOutcomeUnknown, RevisionConflict } from '../event-store/errors.ts';
import type { EventStore, NewEvent, RecordedEvent } from '../event-store/port.ts';
import { type AccessEvent, auditStreamOf } from '../payment/audit-events.ts';
import { withoutLongNumbers } from '../runtime/card-numbers.ts';
import { newEventId, newUlid } from '../runtime/ids.ts';
import { contextOf } from './event-context.ts';

export type Access = {
  action: AccessEvent['data']['action'];
  paymentId?: string | undefined;
  /** What the response follows, beside or instead of the request's own parameters. */
  parameters?: Record<string, string>;
};

/**
 * Resolves once the access is durable. Throws what the store throws: what cannot be recorded is not
 * sent.
 */
export type Recorder = (request: FastifyRequest, access: Access) => Promise<void>;

/** A stream is left for a new one here, so that none grows without end. */
const EVENTS_MAX = 10_000;
const PARAMETERS_MAX = 1000;

/** What tells most of what was read comes first: the text may be cut at its end. */
const FIRST = ['paymentId', 'q', 'merchant'];
const VALUE_MAX = 200;
const rankOf = ([name]: [string, string]): number => (FIRST.includes(name) ? 0 : 1);

const parametersOf = (requested: object): { parameters?: string } => {
  const entries = Object.entries(requested)
    .filter((entry): entry is [string, string] => typeof entry[1] === 'string')
    .map(([name, value]): [string, string] => [name, withoutLongNumbers(value).slice(0, VALUE_MAX)])
    .sort((a, b) => rankOf(a) - rankOf(b));
  const parameters = new URLSearchParams(entries).toString().slice(0, PARAMETERS_MAX);
  return parameters === '' ? {} : { parameters };
};

type End = { stream: string; last: RecordedEvent | undefined };

const newStream = (): End => ({ stream: auditStreamOf(newUlid()), last: undefined });

/** Makes what records the readers of one process. */
export const createRecorder = (store: Pick<EventStore, 'append'>): Recorder => {
  let end = newStream();
  let turn: Promise<unknown> = Promise.resolve();

  const append = async (event: NewEvent): Promise<void> => {
    if ((end.last?.revision ?? 0) >= EVENTS_MAX) end = newStream();
    const again = () => store.append(end.stream, expectedAfter(end.last), [event]);
    try {
      const [stored] = await again().catch((error: unknown) => {
        // The very same append again stores nothing twice.
        if (error instanceof AppendOutcomeUnknown) return again();
        throw error;
      });
      end.last = stored;
    } catch (error) {
      // Where this stream ends is not known any more.
      end = newStream();
      if (!(error instanceof RevisionConflict)) throw error;
      const [stored] = await again();
      end.last = stored;
    }
  };

  const eventOf = (request: FastifyRequest, access: Access): NewEvent<AccessEvent> => {
    const { action, paymentId, parameters } = access;
    // A card number that somebody searches for must not get into the log this way (gaps §4): an id
    // that could be one is cut as every other text is.
    const isPlain = paymentId === undefined || withoutLongNumbers(paymentId) === paymentId;
    const named = paymentId === undefined ? {} : { paymentId };
    if (request.principal === undefined)
      throw new Error('the audit route has no authenticate hook');
    const { merchantId, actor } = request.principal;
    const data = {
      action,
      merchantId,
      ...(isPlain ? named : {}),
      ...parametersOf({ ...Object(request.query), ...parameters, ...(isPlain ? {} : named) }),
    };
    return {
      id: newEventId(),
      time: timeAfter(end.last),
      event: { type: 'AuditAccessed', data },
      context: contextOf({ actor, requestId: request.id }),
    };
  };

  return (request, access) => {
    const recorded = turn.then(() => append(eventOf(request, access)));
    turn = recorded.catch(() => undefined);
    return recorded;
  };
};
