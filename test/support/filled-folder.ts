/**
 * Fills an event log through the event store's port: payments that were authorized, as the service
 * stores them. Without HTTP, checks and a provider, a million take minutes.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NewEvent } from '../../shared/event-store/port.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { maskCard } from '../../shared/payment/card.ts';
import { type PaymentEvent, streamOf } from '../../shared/payment/payment-events.ts';
import { newEventId, newOperationId, newPaymentId } from '../../shared/runtime/ids.ts';
import { ROOT } from './service.ts';

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

/** Appends `count` payments to the log in a data folder that no service has open. */
export const fillFolder = async (dataDir: string, count: number): Promise<void> => {
  const onFatal = (error: Error) => {
    throw error;
  };
  const store = await openSqliteEventStore({ file: join(dataDir, 'events.sqlite'), onFatal });
  try {
    for (let left = count; left > 0; left -= AT_ONCE) {
      const ids = Array.from({ length: Math.min(AT_ONCE, left) }, newPaymentId);
      await Promise.all(ids.map((id) => store.append(streamOf(id), 'none', eventsOf(id))));
    }
  } finally {
    await store.close();
  }
};
