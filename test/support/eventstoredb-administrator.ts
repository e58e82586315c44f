/** What an administrator does to a stream of EventStoreDB, with the server's own client. */
import { addressOf } from '../../shared/event-store/eventstoredb/client.ts';

/** Takes streams away past the service; each call resolves once the server has done it. */
export type Administrator = {
  softDelete(stream: string): Promise<void>;
  tombstone(stream: string): Promise<void>;
  truncate(stream: string, before: number): Promise<void>;
  /** Takes a deletion or truncation back, as long as nothing was scavenged. */
  restore(stream: string): Promise<void>;
  close(): Promise<void>;
};

// Another connection than those of the stores under test.
const TURN = 90;

export const administratorOf = (url: string): Administrator => {
  const address = addressOf(url);
  const client = address.client(TURN);
  const { credentials } = address;
  return {
    softDelete: async (stream) => void (await client.deleteStream(stream, { credentials })),
    tombstone: async (stream) => void (await client.tombstoneStream(stream, { credentials })),
    truncate: async (stream, truncateBefore) =>
      void (await client.setStreamMetadata(stream, { truncateBefore }, { credentials })),
    restore: async (stream) => void (await client.setStreamMetadata(stream, {}, { credentials })),
    close: () => client.dispose(),
  };
};
