/** Values that only the first writer sets: see `claimMeta` of the port. */
import { randomUUID } from 'node:crypto';
import type { Sender } from './append.ts';
import { unavailable } from './call-outcome.ts';
import { proposed } from './records.ts';
import { endedWithoutResponse, type StreamReader } from './stream-reader.ts';

/** Each key has its own stream, whose first event has the value. Throws StoreUnavailable. */
export function createMetaClaims(send: Sender, { whole }: StreamReader) {
  const storedValue = async (stream: string): Promise<string | undefined> => {
    const [first] = await whole(stream);
    return first === undefined ? undefined : String(Object(first.data).value);
  };
  return async (key: string, value: string): Promise<string> => {
    if (!/^[A-Za-z0-9_-]{1,100}$/.test(key)) throw new TypeError('not a key for a value');
    const stream = `meta-${key}`;
    const before = await storedValue(stream);
    if (before !== undefined) return before;
    const claim = proposed(randomUUID(), 'ValueClaimed', { value }, {});
    await send(stream, -1, [claim]).catch((error) => {
      throw unavailable(error);
    });
    const now = await storedValue(stream);
    if (now === undefined) throw endedWithoutResponse();
    return now;
  };
}
