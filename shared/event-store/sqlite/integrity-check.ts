/** A process of its own, which file-check.ts starts with an address: prints a FileFault for each fault. */
import { firstLineOf } from '../../runtime/error-text.ts';
import { takeLowPriority } from '../../runtime/scheduling.ts';
import { capped, isDamage, openEventLogToRead } from '../../runtime/sqlite.ts';
import type { FileFault } from '../port.ts';

const FAULTS_MAX = 10_000;
const PRIORITY_LOWERED_BY = 10;

/** By the number of a row, which is no index. */
const PLACES: Record<string, string> = {
  events: `SELECT CAST(e.position AS TEXT) AS position, s.name AS stream,
    ${capped('e.revision')} AS revision FROM events e JOIN streams s ON s.id = e.stream_id WHERE e.position = ?`,
  streams: `SELECT '' AS position, name AS stream, 0 AS revision FROM streams WHERE id = ?`,
};

const faultAt = (place: object | undefined, why: string): FileFault => ({
  position: '',
  stream: '',
  revision: 0,
  ...place,
  reason: `the file is damaged (${why}): stop the service, then payments repair --data`,
});

function* faultsIn(address: string): Generator<FileFault> {
  let count = 0;
  try {
    using db = openEventLogToRead(address);
    for (const row of db.prepare(`PRAGMA integrity_check(${FAULTS_MAX})`).iterate()) {
      const [text] = Object.values(row);
      if (text === 'ok') return;
      count += 1;
      // SQLite says a fault as a text alone; those of pages come in one, below a heading.
      const [why = ''] = /^(?!\*\*\*).*$/m.exec(String(text)) ?? [];
      const [, number = '', table = ''] =
        /^row (\d+) missing from index \w+_(events|streams)_/.exec(why) ?? [];
      const sql = PLACES[table];
      yield faultAt(sql === undefined ? undefined : db.prepare(sql).get(number), why);
    }
  } catch (error) {
    // A file that cannot be read now is no damage.
    if (!isDamage(error)) throw error;
    yield faultAt(undefined, firstLineOf(error));
  }
  if (count === FAULTS_MAX) yield faultAt(undefined, 'more faults than can be listed');
}

takeLowPriority(PRIORITY_LOWERED_BY);
process.stdout.write(JSON.stringify([...faultsIn(String(process.argv[2]))]));
