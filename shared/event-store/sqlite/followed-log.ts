/**
 * The log of a file, as a thread beside its writer follows it: read over a connection of the thread, up
 * to where the writer has said that it may. The writer learns of a commit a moment after the file has it,
 * and what it does not know of yet is not read here.
 */
import { ofTypes } from '../of-types.ts';
import type { EventStore, LogReader, Position } from '../port.ts';
import { follow, liveTail, positionNumber } from './live-tail.ts';
import { openLog } from './log-scan.ts';
import { liveAddress } from './log-thread.ts';

/** A log that grows when `grow` is called. */
export type FollowedLog = LogReader & {
  subscribe: EventStore['subscribe'];
  /** The log may be read up to here now. */
  grow(end: Position | null): void;
  close(): void;
};

/** Opens the log of a file that this process writes. Throws StoreFileUnusable and StoreUnavailable. */
export const openFollowedLog = (file: string, first: Position | null): FollowedLog => {
  const { log, close } = openLog({ file: liveAddress(file), isLive: true });
  let end = first;
  const last = (): number => positionNumber(end);
  const tail = {
    ...liveTail(0),
    last,
    after: (position: number) => (position < last() ? undefined : []),
  };
  return {
    ...log,
    end: async () => end,
    subscribe: (after, signal, types) => {
      const page = (from: Position, limit: number) => log.readAll(from, limit, end);
      return ofTypes(follow(tail, page, after, signal), types);
    },
    grow: (position) => {
      end = position;
      tail.announce();
    },
    close,
  };
};
