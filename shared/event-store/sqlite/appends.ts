/** Stores groups of appends, in the thread that owns the file: one transaction with one fsync each. */
import type { DatabaseSync } from 'node:sqlite';
import { createGenerationsMap } from '../../runtime/generations-map.ts';
import { GENESIS_HASH, LOG_START, type LogEnd, linkLog } from '../chain.ts';
import { failureOf, isConstraint, messageOf, type Statements } from './database.ts';
import { type AppendJob, type AppendOutcome, Failed, type Row } from './messages.ts';

/** The last event of a stream. `id` is the stream's row in the file. */
type StreamHead = { id: number; revision: number; hash: string };

// The outcome of a payment follows its intent within seconds, and needs no look into the file then.
const HEADS_MIN = 4096;

/** What came of one append, and where the log ends after it. */
type Appended = { outcome: AppendOutcome; end: LogEnd };

/**
 * Makes the function that appends a group of jobs. A job that conflicts leaves the others alone; where
 * the file fails, none is stored and Failed is thrown.
 */
export function appender(database: DatabaseSync, statements: Statements) {
  let heads = createGenerationsMap<StreamHead>(HEADS_MIN);

  function forgetHeads(): void {
    heads = createGenerationsMap(HEADS_MIN);
  }

  /** SQLite has already rolled back by itself after some errors. Throws Failed where it cannot. */
  function rollBack(unknown: boolean): void {
    try {
      if (database.isTransaction) database.exec('ROLLBACK');
    } catch (error) {
      throw new Failed({ kind: 'fatal', message: messageOf(error), unknown });
    }
  }

  /** Throws Failed, and the error itself of a constraint that `appendOne` let through. */
  function transaction(jobs: AppendJob[], appendOne: AppendOne): AppendOutcome[] {
    let committing = false;
    try {
      statements.begin.run();
      let end = (statements.end.get() as LogEnd | undefined) ?? LOG_START;
      const outcomes = jobs.map((job) => {
        const appended = appendOne(job, end);
        end = appended.end;
        return appended.outcome;
      });
      committing = true;
      statements.commit.run();
      return outcomes;
    } catch (error) {
      forgetHeads();
      const failure = failureOf(error, committing);
      rollBack(failure.unknown);
      throw isConstraint(error) && !committing ? error : new Failed(failure);
    }
  }

  /** Where the stream ends in the file; undefined for an unknown stream. */
  function storedHead(stream: string): StreamHead | undefined {
    const last = statements.last.get(stream);
    if (last === undefined) return undefined;
    return { id: Number(last.id), revision: Number(last.revision), hash: String(last.hash) };
  }

  /** The row of the stream, where it ends as the job expects. */
  function streamThatFits(job: AppendJob): number | undefined {
    if (isAt(NO_EVENT, job)) {
      const { changes, lastInsertRowid } = statements.addStream.run(job.stream);
      return changes === 0 ? undefined : Number(lastInsertRowid);
    }
    // What is remembered can be out of date (another program wrote), never ahead.
    const remembered = heads.get(job.stream);
    const head = isAt(remembered, job) ? remembered : storedHead(job.stream);
    return isAt(head, job) ? head?.id : undefined;
  }

  function append(job: AppendJob, end: LogEnd): Appended {
    const stream = streamThatFits(job);
    if (stream === undefined) return { outcome: repeatOf(job) ?? conflictOf(job), end };
    const logHashes = insert(job, stream, end);
    const count = logHashes.length;
    const { hash = '' } = job.events[count - 1] ?? {};
    heads.set(job.stream, { id: stream, revision: job.revision + count, hash });
    const newEnd = { position: end.position + count, logHash: logHashes[count - 1] ?? '' };
    return { outcome: { first: end.position + 1, logHashes }, end: newEnd };
  }

  /** The same at twice the cost, for a group in which a job may break a constraint. */
  function appendWithSavepoint(job: AppendJob, end: LogEnd): Appended {
    statements.savepoint.run();
    try {
      const appended = append(job, end);
      statements.release.run();
      return appended;
    } catch (error) {
      if (!isConstraint(error)) throw error;
      forgetHeads();
      statements.undo.run();
      statements.release.run();
      return { outcome: { conflict: 'holds one of the event ids elsewhere in the log' }, end };
    }
  }

  /** The links of the job's events in the log. */
  function insert(job: AppendJob, stream: number, before: LogEnd): string[] {
    let { position, logHash } = before;
    let { revision } = job;
    const logHashes: string[] = [];
    for (const { id, hash, text } of job.events) {
      position += 1;
      revision += 1;
      logHash = linkLog(logHash, hash);
      statements.addEvent.run(position, stream, revision, id, hash, logHash, text);
      logHashes.push(logHash);
    }
    return logHashes;
  }

  /** The stored rows when this very append has been stored before (its response was lost). */
  function repeatOf({ stream, revision, events }: AppendJob): AppendOutcome | undefined {
    const rows = statements.storedFrom.all(stream, revision, events.length) as unknown as Row[];
    const same =
      rows.length === events.length && rows.every(([, , , id], at) => id === events[at]?.id);
    return same ? { repeated: rows } : undefined;
  }

  const conflictOf = ({ stream }: AppendJob): AppendOutcome => ({
    conflict: `ends at revision ${storedHead(stream)?.revision ?? -1}`,
  });

  return (jobs: AppendJob[]): AppendOutcome[] => {
    try {
      return transaction(jobs, append);
    } catch (error) {
      if (error instanceof Failed) throw error;
      return transaction(jobs, appendWithSavepoint);
    }
  };
}

const NO_EVENT: StreamHead = { id: 0, revision: -1, hash: GENESIS_HASH };

type AppendOne = (job: AppendJob, end: LogEnd) => Appended;

const isAt = (head: StreamHead | undefined, { revision, hash }: AppendJob): boolean =>
  head !== undefined && head.revision === revision && head.hash === hash;
