/** Where the streams that were appended to last end, so that the next append to them reads nothing. */

/** The last event of a stream. `id` is the stream's row in the file. */
export type StreamHead = { id: number; revision: number; hash: string };

// The outcome of a payment follows its intent within seconds.
const GENERATION_STREAMS = 4096;

/**
 * The heads of the last 4,096 to 8,192 streams that were appended to. They lie in two generations of
 * Maps, of which the older one is dropped whole: a Map that entries are deleted from keeps what was in
 * it alive until a full garbage collection.
 */
export function recentHeads() {
  let young = new Map<string, StreamHead>();
  let old = new Map<string, StreamHead>();
  return {
    get: (stream: string): StreamHead | undefined => young.get(stream) ?? old.get(stream),
    set(stream: string, head: StreamHead): void {
      if (young.size >= GENERATION_STREAMS) {
        old = young;
        young = new Map();
      }
      young.set(stream, head);
    },
    forgetAll(): void {
      young = new Map();
      old = new Map();
    },
  };
}
