/** Values of which the first writer's stands, each in a stream of its own. */
import { randomUUID } from 'node:crypto';
import { createSender, type Proposed } from './append.ts';
import { unavailable } from './call-outcome.ts';
import type { Connection } from './connection.ts';
import { endedWithoutResponse, type StreamReader } from './stream-reader.ts';

/** The first writer's value is the first event of a stream of its own. */
export function createMetaClaims(connection: Connection, { whole }: StreamReader) {
  const send = createSender(connection);
  const standing = async (stream: string): Promise<string | undefined> => {
    const [first] = await whole(stream);
    return first === undefined ? undefined : String(Object(first.data).value);
  };
  return async (key: string, value: string): Promise<string> => {
    if (!/^[A-Za-z0-9_-]{1,100}$/.test(key)) throw new TypeError('not a key for a value');
    const stream = `meta-${key}`;
    const stands = await standing(stream);
    if (stands !== undefined) return stands;
    const claim = { id: randomUUID(), type: 'ValueClaimed', data: { value }, metadata: {} };
    await send(stream, -1, [claim as Proposed]).catch((error) => {
      throw unavailable(error);
    });
    const now = await standing(stream);
    if (now === undefined) throw endedWithoutResponse();
    return now;
  };
}
