/** Tells of documents that were found not to be as they were written, each once until it is written again. */
import { createBoundedMap } from '../runtime/bounded-map.ts';

/** How many damaged documents are known by id; one beyond may be reported a second time. */
const REPORTED_MAX = 1_000;

/** See `createDamageReports`. */
export type DamageReports = {
  /** Calls each listener with every damaged document that is found from now on. */
  onDamage(listener: (paymentId: string) => void): void;
  /** The document of this payment does not have its check. */
  report(paymentId: string): void;
  /** The document has been written again. */
  written(paymentId: string): void;
};

/** The reports of one set of read models. */
export const createDamageReports = (): DamageReports => {
  const reported = createBoundedMap<true>(REPORTED_MAX);
  const listeners: ((paymentId: string) => void)[] = [];
  return {
    onDamage: (listener) => void listeners.push(listener),
    report: (paymentId) => {
      if (reported.get(paymentId)) return;
      reported.set(paymentId, true);
      for (const listener of listeners) listener(paymentId);
    },
    written: (paymentId) => void reported.delete(paymentId),
  };
};
