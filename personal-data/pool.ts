/** Keys made ahead, so that no create waits for a disk. After a crash its leftovers are never used. */
import { within } from '../shared/runtime/back-off.ts';
import { firstLineOf } from '../shared/runtime/error-text.ts';
import { type KeyStore, KeysUnavailable, type PersonalKey, type StoredKeys } from './port.ts';

const POOL_KEYS = 768;
const REFILL_AT_KEYS = 256;

export const createPool = (make: StoredKeys['make']) => {
  const ready: PersonalKey[] = [];
  let filling: Promise<void> | undefined;

  const fill = async (): Promise<void> => {
    try {
      ready.push(...(await make(POOL_KEYS - ready.length)));
    } catch (error) {
      throw new KeysUnavailable(`no key for personal data can be made: ${firstLineOf(error)}`);
    } finally {
      filling = undefined;
    }
  };
  const refill = (): Promise<void> => {
    filling ??= fill();
    // A failure is told to those that wait for a key.
    filling.catch(() => undefined);
    return filling;
  };

  const take: KeyStore['take'] = async (waitMs) => {
    const endMs = performance.now() + waitMs;
    for (;;) {
      const key = ready.pop();
      if (ready.length <= REFILL_AT_KEYS) void refill();
      if (key !== undefined) return key;
      const late = () => new KeysUnavailable(`no key for personal data within ${waitMs} ms`);
      if (performance.now() > endMs) throw late();
      await within(endMs - performance.now(), refill(), late);
    }
  };
  return { take, refill };
};
