/** Records each reading of audit data in the log before its response leaves (ADR-0011). */
import type { FastifyRequest } from 'fastify';
import { expectedAfter, timeAfter } from '../shared/event-store/codec.ts';
import { AppendOutcomeUnknown, RevisionConflict } from '../shared/event-store/errors.ts';
import type { EventStore, NewEvent, RecordedEvent } from '../shared/event-store/port.ts';
import { contextOf, senderOf } from '../shared/http/request.ts';
import type {} from '../shared/http/server/app.ts';
import { type AccessEvent, auditStreamOf } from '../shared/payment/audit-events.ts';
import { withoutLongNumbers } from '../shared/runtime/card-numbers.ts';
import { newEventId, newUlid } from '../shared/runtime/ids.ts';
import { oneAfterAnother } from '../shared/runtime/scheduling.ts';

export type Access = {
  action: AccessEvent['data']['action'];
  paymentId?: string | undefined;
  /** Added to the request's own parameters, or replacing them. */
  parameters?: Record<string, string>;
};

/** Resolves once the access is durable; throws what the store throws, and then no response is sent. */
export type Recorder = (request: FastifyRequest, access: Access) => Promise<void>;

const EVENTS_MAX = 10_000;
const PARAMETERS_MAX = 1000;

/** These come first, because the text may be cut at its end. */
const FIRST = ['paymentId', 'q', 'merchant'];
const VALUE_MAX = 200;
const EMAIL = /[^\s@]{1,64}@[^\s@]+/g;
const rankOf = ([name]: [string, string]): number => (FIRST.includes(name) ? 0 : 1);

const parametersOf = (requested: object): { parameters?: string } => {
  const entries = Object.entries(requested)
    .filter((entry): entry is [string, string] => typeof entry[1] === 'string')
    .map(([name, value]): [string, string] => [
      name,
      withoutLongNumbers(value).replace(EMAIL, '…@…').slice(0, VALUE_MAX),
    ])
    .sort((a, b) => rankOf(a) - rankOf(b));
  const parameters = new URLSearchParams(entries).toString().slice(0, PARAMETERS_MAX);
  return parameters === '' ? {} : { parameters };
};

type End = { stream: string; last: RecordedEvent | undefined };

const newStream = (): End => ({ stream: auditStreamOf(newUlid()), last: undefined });

export const createRecorder = (store: Pick<EventStore, 'append'>): Recorder => {
  let end = newStream();
  const inTurn = oneAfterAnother();

  const append = async (event: NewEvent): Promise<void> => {
    if ((end.last?.revision ?? 0) >= EVENTS_MAX) end = newStream();
    const attempt = async (): Promise<void> => {
      [end.last] = await store.append(end.stream, expectedAfter(end.last), [event]);
    };
    try {
      await attempt();
    } catch (error) {
      // Repeating the same append stores nothing twice.
      if (error instanceof AppendOutcomeUnknown) return attempt();
      end = newStream();
      if (!(error instanceof RevisionConflict)) throw error;
      await attempt();
    }
  };

  const eventOf = (request: FastifyRequest, access: Access): NewEvent<AccessEvent> => {
    const { action, paymentId, parameters } = access;
    // A searched card number must not reach the log (gaps §4): an id that could be one is cut like any text.
    const isPlain = paymentId === undefined || withoutLongNumbers(paymentId) === paymentId;
    const named = paymentId === undefined ? {} : { paymentId };
    if (request.principal === undefined)
      throw new Error('the audit route has no authenticate hook');
    const { merchantId } = request.principal;
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
      context: contextOf(senderOf(request.principal, { request })),
    };
  };

  return (request, access) => inTurn(async () => append(eventOf(request, access)));
};
