/** What was deleted or cut, by tombstones and by the metadata of streams. */
import type { Stored } from './stored.ts';

type Metadata = { $tb?: number; $maxCount?: number; $acl?: { $r: string } };

const metadataOf = ({ data }: Stored): Metadata =>
  JSON.parse(Buffer.from(data, 'base64').toString());

/** `lengthOf` counts all events of a stream, the cut ones too. */
export function createRemoved(lengthOf: (stream: string) => number) {
  const tombstoned = new Set<string>();
  const metadata = new Map<string, Metadata>();
  /** The metadata event in force of each stream of metadata: a scavenge keeps no older one. */
  const inForce = new Map<string, Stored>();

  /** The first revision that a read shows. */
  const beginOf = (stream: string): number => {
    const { $tb = 0, $maxCount = Number.POSITIVE_INFINITY } = metadata.get(stream) ?? {};
    return Math.max(0, $tb, lengthOf(stream) - $maxCount);
  };

  return {
    beginOf,
    /** Its service's user is none of those whom the metadata name. */
    isRefused: (stream: string): boolean => metadata.get(stream)?.$acl !== undefined,
    isTombstoned: (stream: string): boolean => tombstoned.has(stream),
    isSoftDeleted: (stream: string): boolean =>
      (metadata.get(stream)?.$tb ?? 0) >= Number.MAX_SAFE_INTEGER,
    /** Takes a new event into account; true for a tombstone, which has no revision of its own. */
    note(event: Stored): boolean {
      if (event.stream.startsWith('$$')) {
        metadata.set(event.stream.slice(2), metadataOf(event));
        inForce.set(event.stream, event);
      }
      if (event.type !== '$streamDeleted') return false;
      tombstoned.add(event.stream);
      return true;
    },
    survives(event: Stored): boolean {
      const { stream, type, revision } = event;
      if (type === '$streamDeleted') return true;
      if (stream.startsWith('$$'))
        return inForce.get(stream) === event && !tombstoned.has(stream.slice(2));
      // The server keeps the last event of a stream that it could go on with.
      return !tombstoned.has(stream) && revision >= Math.min(beginOf(stream), lengthOf(stream) - 1);
    },
  };
}
