import { createBoundedMap } from '../runtime/bounded-map.ts';

/** How many damaged documents are known by id; one beyond may be reported a second time. */
const REPORTED_MAX = 1_000;

/** Reports each document that does not have its check once, until it is written again. */
export const createDamageReports = () => {
  const reported = createBoundedMap<true>(REPORTED_MAX);
  const listeners: ((paymentId: string) => void)[] = [];
  return {
    onDamage: (listener: (paymentId: string) => void): void => void listeners.push(listener),
    report: (paymentId: string): void => {
      if (reported.get(paymentId)) return;
      reported.set(paymentId, true);
      for (const listener of listeners) listener(paymentId);
    },
    written: (paymentId: string): void => void reported.delete(paymentId),
  };
};
export type DamageReports = ReturnType<typeof createDamageReports>;
