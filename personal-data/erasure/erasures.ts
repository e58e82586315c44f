/**
 * Carries out in the store of keys what the log says was erased: at once, and again after each start, because a
 * restored store of keys may be older than the log.
 */
import { decode, isReadable } from '../../shared/event-store/codec.ts';
import type { EventStore, RecordedEvent } from '../../shared/event-store/port.ts';
import { logPages } from '../../shared/event-store/scan-log.ts';
import type { KeyStore } from '../port.ts';

const ERASED = 'PaymentPersonalDataErased';

export const createErasures = (
  store: EventStore,
  keys: Pick<KeyStore, 'erase' | 'checkpoint' | 'saveCheckpoint'>,
) => {
  /** Of a payment, also one that was carried out before; whether it has one. Throws what the store of keys throws. */
  const carryOut = async (events: readonly Pick<RecordedEvent, 'event'>[]): Promise<boolean> => {
    const erased = events.findLast(({ event }) => event.type === ERASED)?.event;
    if (erased?.type !== ERASED) return false;
    await keys.erase(erased.data.keys);
    return true;
  };

  /** Those of the log since the last call. Throws what the stores throw. */
  const repeat = async (signal: AbortSignal): Promise<void> => {
    const end = await store.end();
    const saved = await keys.checkpoint();
    // A new store of keys has none of an earlier event, and another log than the saved one is read whole.
    const isOfLog = saved !== undefined && saved !== '' && (await store.hashAt(saved)) !== null;
    const after = saved === undefined ? end : isOfLog ? saved : null;
    for await (const { page } of logPages(store.stored, after, end, signal))
      for (const event of page
        .filter(({ text }) => text.includes(ERASED))
        .map((one) => decode(one)))
        if (isReadable(event)) await carryOut([event]);
    const reached = end ?? '';
    if (!signal.aborted && reached !== saved) await keys.saveCheckpoint(reached);
  };
  return { carryOut, repeat };
};
export type Erasures = ReturnType<typeof createErasures>;
