/** The stand-in's log in the hands of a writer of the server's files. */
import type { Log } from './log.ts';
import type { Stored } from './stored.ts';

/** Changes events, takes them out or puts them in; each lies where it says. */
export const editLog = (
  { all, streams }: Pick<Log, 'all' | 'streams'>,
  change: (events: readonly Stored[]) => Stored[],
): void => {
  const changed = change(all);
  all.splice(0, all.length, ...changed);
  streams.clear();
  for (const event of changed) {
    const stored = streams.get(event.stream) ?? [];
    stored.push(event);
    streams.set(event.stream, stored);
  }
};
