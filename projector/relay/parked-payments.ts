/** The payments that the relay has parked, as its checkpoint notes them. */
import type { LogEvent } from '../../shared/event-store/port.ts';
import type { RelayCheckpoint } from './checkpoint.ts';

/**
 * How many payments may be parked (ADR-0046): their notes are 4 MB then, and a document of MongoDB
 * takes 16 MB. So many come from a wrong version of the service, and nothing is lost by waiting.
 */
export const PARKED_MAX = 20_000;

/** The log line has the whole reason. */
const REASON_CHARS_MAX = 100;

/** Notes in a checkpoint that an event of a payment is left out. Throws Error above PARKED_MAX payments. */
export const noteParked = (
  { parked }: RelayCheckpoint,
  paymentId: string,
  { revision }: Pick<LogEvent, 'revision'>,
  reason: string,
): void => {
  const parking = parked[paymentId];
  if (parking === undefined && Object.keys(parked).length >= PARKED_MAX) {
    throw new Error(
      `${PARKED_MAX} payments are parked, and no more can be noted: is this an earlier version of the service than the one that wrote the events? The last reason: ${reason}`,
    );
  }
  const first = {
    from: revision,
    reason: reason.slice(0, REASON_CHARS_MAX),
    since: new Date().toISOString(),
  };
  parked[paymentId] = { ...(parking ?? first), to: revision };
};

/** Notes that a left-out event of a payment is sent now; with the last of them the payment is done. */
export const noteSent = (
  checkpoint: RelayCheckpoint,
  paymentId: string,
  { revision }: Pick<LogEvent, 'revision'>,
): void => {
  const { parked } = checkpoint;
  const parking = parked[paymentId];
  if (parking !== undefined && revision !== parking.to) {
    parked[paymentId] = { ...parking, from: revision + 1 };
    return;
  }
  delete parked[paymentId];
  delete checkpoint.sending;
};

/** Notes why a payment stays parked, and puts it behind the others: those are tried before it. */
export const noteStillParked = (
  { parked }: RelayCheckpoint,
  paymentId: string,
  reason: string,
): void => {
  const parking = parked[paymentId];
  if (parking === undefined) return;
  delete parked[paymentId];
  parked[paymentId] = { ...parking, reason: reason.slice(0, REASON_CHARS_MAX) };
};
