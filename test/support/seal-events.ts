/** Seals in a log, for readers of the stream of seals that do not check them. */
import { generateKeyPairSync } from 'node:crypto';
import { makeSeal } from '../../audit/seals/seals.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { SEALS_STREAM } from '../../shared/payment/seal-events.ts';

/** Seals of nothing: the relay reads them and does not check them. */
export const appendSeals = async (
  store: Pick<EventStore, 'append' | 'readStream'>,
  count: number,
): Promise<void> => {
  const { privateKey } = generateKeyPairSync('ed25519');
  for (let n = 1; n <= count; n += 1) {
    const head = { log: crypto.randomUUID(), position: String(n), logHash: 'ab'.repeat(32) };
    const seal = makeSeal(privateKey, { ...head, eventsMax: 10 });
    const last = n === 1 ? undefined : (await store.readStream(SEALS_STREAM)).at(-1);
    const id = crypto.randomUUID();
    await store.append(SEALS_STREAM, last ?? 'none', [
      {
        id,
        time: '2026-01-01T00:00:00.000Z',
        event: { type: 'LogSealed', data: seal },
        context: { actor: 'sealer', requestId: id, correlationId: id, causationId: id },
      },
    ]);
  }
};
