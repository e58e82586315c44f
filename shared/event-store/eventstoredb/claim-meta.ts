/** Values that only the first writer sets: see `claimMeta` of the port. */
import { randomUUID } from 'node:crypto';
import { createSender, type Proposed } from './append.ts';
import { unavailable } from './call-outcome.ts';
import type { Connection } from './connection.ts';
import { endedWithoutResponse, type StreamReader } from './stream-reader.ts';

/** Each key has its own stream, whose first event has the value. Throws StoreUnavailable. */
export function createMetaClaims(connection: Connection, { whole }: StreamReader) {
  const send = createSender(connection);
  const storedValue = async (stream: string): Promise<string | undefined> => {
    const [first] = await whole(stream);
    return first === undefined ? undefined : String(Object(first.data).value);
  };
  return async (key: string, value: string): Promise<string> => {
    if (!/^[A-Za-z0-9_-]{1,100}$/.test(key)) throw new TypeError('not a key for a value');
    const stream = `meta-${key}`;
    const before = await storedValue(stream);
    if (before !== undefined) return before;
    const claim = { id: randomUUID(), type: 'ValueClaimed', data: { value }, metadata: {} };
    await send(stream, -1, [claim as Proposed]).catch((error) => {
      throw unavailable(error);
    });
    const now = await storedValue(stream);
    if (now === undefined) throw endedWithoutResponse();
    return now;
  };
}
