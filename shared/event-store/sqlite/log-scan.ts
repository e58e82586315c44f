/**
 * A scan of the log in a thread of its own (scan-log.ts), over a second connection to the file, which
 * only reads and is closed with the scan. Each page is a transaction of its own, so that a long scan never
 * keeps the write-ahead log from being moved into the file.
 */

import { type Scan, stepsOf } from '../../runtime/scan.ts';
import { GENESIS_HASH } from '../chain.ts';
import { decodeForm } from '../decode-form.ts';
import { StoreFileUnusable, StoreUnavailable } from '../errors.ts';
import type { HashesAt, LogReader, StoredForm } from '../port.ts';
import type { LogScan } from '../scan-log.ts';
import type { Link } from '../verify-chain.ts';
import { wholeStream } from '../whole-stream.ts';
import { codeOf, messageOf, openForReading, prepareAll } from './database.ts';
import { positionNumber } from './live-tail.ts';
import type { Row } from './messages.ts';
import { decodeRow, disorder, type LeanRow, leanForms, pageArgs, storedForm } from './rows.ts';

/** The file by its address, and what to run over it; `isLive` while a service writes to it. */
export type LogScanArgs = { file: string; isLive: boolean; module: string; args: unknown };

const WAIT_MS_MAX = 5000;
/** SQLite's codes of a damaged file. */
const CORRUPT = 11;
const NOT_A_DATABASE = 26;

type File = Pick<LogScanArgs, 'file' | 'isLive'>;

/** A file that nobody writes to is unusable whatever its error is; a live one may only be busy. */
const portErrorOf = (error: unknown, { file, isLive }: File): Error => {
  const message = `${file}: ${messageOf(error)} (SQLite error ${codeOf(error)})`;
  const isDamage = [CORRUPT, NOT_A_DATABASE].includes(codeOf(error) & 0xff);
  return isDamage || !isLive ? new StoreFileUnusable(message) : new StoreUnavailable(message);
};

/** Opens the log of a file for reading. It and each call throw StoreFileUnusable or StoreUnavailable. */
export const openLog = (given: File) => {
  const read = <T>(step: () => T): T => {
    try {
      return step();
    } catch (error) {
      throw portErrorOf(error, given);
    }
  };
  const database = read(() => openForReading(given.file));
  database.exec(`PRAGMA busy_timeout = ${WAIT_MS_MAX}`);
  const statements = read(() => prepareAll(database));
  const logHashAt = (position: number): string | null =>
    position === 0
      ? GENESIS_HASH
      : ((statements.endAt.get(position)?.logHash as string | undefined) ?? null);
  const formsOf = (...page: Parameters<typeof pageArgs>): StoredForm[] => {
    const { after, upTo, limit } = pageArgs(...page);
    const rows = read(() => statements.leanPage.all(after, upTo, limit) as unknown as LeanRow[]);
    const misplaced = disorder(rows, after);
    if (misplaced !== undefined) throw new StoreFileUnusable(`${given.file}: ${misplaced}`);
    return leanForms(rows, (position) => read(() => logHashAt(position)));
  };

  const log: LogReader = {
    end: async () =>
      read(() => statements.end.get()?.position as number | undefined)?.toString() ?? null,
    readStream: async (stream) =>
      wholeStream(read(() => statements.readStream.all(stream) as unknown as Row[]).map(decodeRow)),
    lastRevision: async (stream) =>
      read(() => statements.lastRevision.get(stream)?.revision as number | null) ?? null,
    readAll: async (...page) => formsOf(...page).map(decodeForm),
    hashAt: async (position) =>
      read(() => statements.hashAt.get(positionNumber(position)) as HashesAt | undefined) ?? null,
    stored: {
      guarantee: 'log',
      readStream: async (stream) =>
        read(() => statements.chainOfStream.all(stream) as Link<number>[]).map(storedForm),
      readAll: async (...page) => formsOf(...page),
    },
  };
  return { log, close: () => database.close() };
};

/** Runs the scan that the arguments name over the file. */
export const scan: Scan<LogScanArgs, unknown, unknown> = async function* (given, tools) {
  const { log, close } = openLog(given);
  try {
    const code: { scan: LogScan<unknown, unknown, unknown> } = await import(given.module);
    return yield* stepsOf(code.scan(log, given.args, tools));
  } finally {
    close();
  }
};
