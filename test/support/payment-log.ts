import { createPaymentLog, type PaymentLog } from '../../command-api/payment-log.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';

/** What a command process reads and appends by, over a store; it keeps ten payments unless told otherwise. */
export const paymentLogOver = (
  store: EventStore,
  more: Partial<Parameters<typeof createPaymentLog>[0]> = {},
): PaymentLog =>
  createPaymentLog({
    store,
    nowMs: Date.now,
    metrics: createMetrics(),
    cachedPaymentsMax: 10,
    cachedBytesMax: 1_000_000,
    ...more,
  });
