/**
 * Fills an event log through the event store's own port: payments that were authorized, as the service
 * stores them. Without HTTP, checks and a provider, a million take minutes.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EventStore, NewEvent } from '../../shared/event-store/port.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { maskCard } from '../../shared/payment/card.ts';
import { type PaymentEvent, streamOf } from '../../shared/payment/payment-events.ts';
import { newEventId, newOperationId, newPaymentId } from '../../shared/runtime/ids.ts';
import { ROOT } from './server.ts';

const REQUEST = JSON.parse(readFileSync(join(ROOT, 'examples/payment.json'), 'utf8'));
const AT_ONCE = 512;
const MERCHANT = 'm_demo';

const { amount, currency, captureNow, paymentMethod, ...details } = REQUEST;
const card = maskCard(paymentMethod.card, 'VISA');

const eventsOf = (paymentId: string): NewEvent[] => {
  const time = new Date().toISOString();
  const operationId = newOperationId();
  const money = { operationId, amount, currency };
  const identity = { fingerprint: newOperationId().padEnd(43, '0') };
  const created: PaymentEvent = {
    type: 'PaymentCreated',
    data: { ...money, paymentId, merchantId: MERCHANT, captureNow, card, details, identity },
  };
  const context = {
    actor: MERCHANT,
    requestId: operationId,
    correlationId: operationId,
    causationId: operationId,
  };
  const authorized: PaymentEvent = { type: 'PaymentAuthorized', data: money };
  return [created, authorized].map((event) => ({ id: newEventId(), time, event, context }));
};

/** Appends payments and returns their ids, in the order they were made. */
const appendPayments = async (
  store: Pick<EventStore, 'append'>,
  count: number,
  report: (done: number) => void,
): Promise<string[]> => {
  const ids: string[] = [];
  while (ids.length < count) {
    const group = Array.from({ length: Math.min(AT_ONCE, count - ids.length) }, newPaymentId);
    await Promise.all(group.map((id) => store.append(streamOf(id), 'none', eventsOf(id))));
    ids.push(...group);
    report(ids.length);
  }
  return ids;
};

/** Fills the log in a data folder of which no service runs. */
export const fillFolder = async (
  dataDir: string,
  count: number,
  report: (done: number) => void,
): Promise<string[]> => {
  const onFatal = (error: Error) => {
    throw error;
  };
  const store = await openSqliteEventStore({ file: join(dataDir, 'events.sqlite'), onFatal });
  try {
    return await appendPayments(store, count, report);
  } finally {
    await store.close();
  }
};
