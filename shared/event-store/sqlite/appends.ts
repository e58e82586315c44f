import type { DatabaseSync } from 'node:sqlite';
import { reasonOf } from '../../runtime/error-text.ts';
import { GENESIS_HASH, LOG_START, type LogEnd, linkLog } from '../chain.ts';
import { failureOf, type Statements } from './database.ts';
import { type AppendJob, type AppendOutcome, Failed, type Row } from './messages.ts';

type StreamHead = { id: number; revision: number; hash: string };

type Appended = { outcome: AppendOutcome; end: LogEnd };

/** A job that conflicts leaves the others alone; where the file fails, none is stored: Failed. */
export function appender(database: DatabaseSync, statements: Statements) {
  /** SQLite rolls back by itself after some errors. Throws Failed where it cannot. */
  function rollBack(unknown: boolean): void {
    try {
      if (database.isTransaction) database.exec('ROLLBACK');
    } catch (error) {
      throw new Failed({ kind: 'fatal', message: reasonOf(error), unknown });
    }
  }

  const storedHead = (stream: string) => statements.last.get(stream) as StreamHead | undefined;

  function streamThatFits({ stream, revision, hash }: AppendJob): number | undefined {
    if (revision === -1 && hash === GENESIS_HASH) {
      const { changes, lastInsertRowid } = statements.addStream.run(stream);
      return changes === 0 ? undefined : Number(lastInsertRowid);
    }
    const head = storedHead(stream);
    return head?.revision === revision && head.hash === hash ? head.id : undefined;
  }

  function repeatsIds({ events }: AppendJob): boolean {
    const ids = new Set(events.map(({ id }) => id));
    return ids.size < events.length || events.some(({ id }) => statements.hasId.get(id));
  }

  /** This very append may be stored already, when its response was lost. */
  function repeatOf({ stream, revision, events }: AppendJob): AppendOutcome | undefined {
    const rows = statements.storedFrom.all(stream, revision, events.length) as unknown as Row[];
    const isSame =
      rows.length === events.length && rows.every(([, , , id], at) => id === events[at]?.id);
    return isSame ? { repeated: rows } : undefined;
  }

  function insert({ revision, events }: AppendJob, stream: number, before: LogEnd): string[] {
    let { logHash } = before;
    return events.map(({ id, hash, text }, at) => {
      logHash = linkLog(logHash, hash);
      const position = before.position + 1 + at;
      statements.addEvent.run(position, stream, revision + 1 + at, id, hash, logHash, text);
      return logHash;
    });
  }

  function append(job: AppendJob, end: LogEnd): Appended {
    if (repeatsIds(job)) {
      const conflict = 'holds one of the event ids elsewhere in the log';
      return { outcome: repeatOf(job) ?? { conflict }, end };
    }
    const stream = streamThatFits(job);
    if (stream === undefined) {
      const conflict = `ends at revision ${storedHead(job.stream)?.revision ?? -1}`;
      return { outcome: { conflict }, end };
    }
    const logHashes = insert(job, stream, end);
    const position = end.position + logHashes.length;
    const newEnd = { position, logHash: logHashes.at(-1) ?? end.logHash };
    return { outcome: { first: end.position + 1, logHashes }, end: newEnd };
  }

  return (jobs: AppendJob[]): AppendOutcome[] => {
    let committing = false;
    try {
      statements.begin.run();
      let end = (statements.end.get() as LogEnd | undefined) ?? LOG_START;
      const outcomes = jobs.map((job) => {
        const appended = append(job, end);
        end = appended.end;
        return appended.outcome;
      });
      committing = true;
      statements.commit.run();
      return outcomes;
    } catch (error) {
      const failure = failureOf(error, committing);
      rollBack(failure.unknown);
      throw new Failed(failure);
    }
  };
}
