/** A failed fsync ends the process, and loses nothing that was acknowledged (faults: SQLite). */
import { afterAll, describe, test } from '@jest/globals';
import { noFailingDisk, openFailingDisk } from '../support/failing-disk.ts';
import { surviveFailedSync } from '../support/failing-disk-rounds.ts';
import { shareOf } from '../support/long-run-share.ts';

const WRITERS = 16;
const ROUNDS = [
  // Commands whose commit was complete may still get their response; no later one may.
  { when: 'at a commit', file: 'events.sqlite-wal', takenAfterMax: 2 * WRITERS },
  // A checkpoint comes once the write-ahead log has grown to 8 MB; the commits before it succeed.
  { when: 'at a checkpoint', file: 'events.sqlite', takenAfterMax: Number.POSITIVE_INFINITY },
];

const missing = noFailingDisk();
const about = missing === undefined ? describe : describe.skip;

about(`a failed fsync${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  const disk = missing === undefined ? openFailingDisk() : undefined;
  afterAll(() => disk?.remove());

  test.each(shareOf(ROUNDS, 1))(
    '$when ends the process with one line, and nothing acknowledged is lost',
    async (round) => {
      if (disk === undefined) throw new Error(missing);
      await surviveFailedSync(disk, { ...round, writers: WRITERS });
    },
    240_000,
  );
});
