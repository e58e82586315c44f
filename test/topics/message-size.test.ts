/** What the topics carry fits the broker, however large a payment is (gaps §18). */
import { describe, expect, test } from '@jest/globals';
import { asPaymentEvent } from '../../shared/event-store/fold-stream.ts';
import { followPaymentStates } from '../../shared/event-store/payment-states.ts';
import type { RecordedEvent } from '../../shared/event-store/port.ts';
import type { PaymentEvent } from '../../shared/payment/events.ts';
import { eventMessage, stateMessage } from '../../topics/messages.ts';
import type { FeedMessage } from '../../topics/port.ts';
import { declinedRefunds, largestCreated } from '../support/largest-payment.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import { appendPayment } from '../support/payment-events.ts';

/** What a broker takes unless it is set otherwise (max.message.bytes). */
const BROKER_BYTES_MAX = 1_048_588;

const bytesOf = ({ key, value, headers }: FeedMessage): number =>
  [key, value, ...Object.entries(headers).flat()].reduce((n, t) => n + Buffer.byteLength(t), 0);

/** Both messages of the last of some events. */
const lastMessages = async (events: PaymentEvent[]) => {
  const store = memoryEventStore();
  const stored = await appendPayment(store, 'pay_1', events);
  const last = asPaymentEvent(stored.at(-1) as RecordedEvent);
  const readModel = await followPaymentStates(store).after(last);
  return {
    readModel,
    event: eventMessage(last, readModel, { partition: 0, number: 0 }),
    state: stateMessage(last, readModel, { partition: 0 }),
  };
};

describe('a state message does not grow with its payment', () => {
  test('it has the last 50 transactions, and how many there are', async () => {
    const { readModel, state } = await lastMessages(declinedRefunds(largestCreated('pay_1'), 120));
    const { data } = JSON.parse(state.value);
    expect(data.transactionCount).toBe(120);
    expect(data.transactions).toEqual(readModel.transactions.slice(-50));
  });

  test('the largest payment that the contract allows fits a broker with its own settings', async () => {
    const created = await lastMessages([largestCreated('pay_1')]);
    const whole = await lastMessages(declinedRefunds(largestCreated('pay_1'), 1000));
    for (const message of [created.event, created.state, whole.event, whole.state]) {
      expect(bytesOf(message)).toBeLessThan(BROKER_BYTES_MAX / 2);
    }
  });
});
