/** Documents that a read found without their check, and a file that cannot be read (ADR-0121). */
import type { Logger } from '../runtime/log.ts';
import type { ReadModelsReader } from './port.ts';

/** In the place of a payment's id, where the store's file is damaged or gone. */
export const WHOLE_FILE = '-';

export const NO_CHECK = 'it does not have its check';

/** Further ones would not make the alert another one. */
const KNOWN_MAX = 1_000;

export const createDamageReports = () => {
  const damaged = new Set<string>();
  const listeners: ((paymentId: string, reason: string) => void)[] = [];
  return {
    onDamage: (listener: (paymentId: string, reason: string) => void): void =>
      void listeners.push(listener),
    damaged: (): string[] => [...damaged],
    /** As a read found it; `reason` is undefined for a document that has its check. */
    note: (paymentId: string, reason?: string): void => {
      if (reason === undefined) damaged.delete(paymentId);
      else if (!damaged.has(paymentId) && damaged.size < KNOWN_MAX) {
        damaged.add(paymentId);
        for (const listener of listeners) listener(paymentId, reason);
      }
    },
    /** Others are read from now on. */
    clear: (): void => damaged.clear(),
  };
};
export type DamageReports = ReturnType<typeof createDamageReports>;

const LINE =
  'read model is damaged, and the event log is read in its place: compare all with `payments verify --read-models`, fill them anew with `payments projections rebuild`';

export const logDamage = (
  { onDamage }: Pick<ReadModelsReader, 'onDamage'>,
  logger: Pick<Logger, 'error'>,
): void => onDamage((paymentId, reason) => logger.error({ paymentId, reason }, LINE));
