/**
 * Makes a new generation's file whole once it is filled: one thread makes its indexes, and meanwhile
 * another one its checksum.
 */
import { pathToFileURL } from 'node:url';
import { resultOf } from '../../runtime/scan.ts';
import { type ScanThread, withScanThread } from '../../runtime/scan-thread.ts';
import type { ReadModelsChecksum } from '../port.ts';
import { CHECKSUM_SCAN, type ChecksumArgs } from './checksum-scan.ts';
import { unavailable } from './connection.ts';
import { MAKE_WHOLE_SCAN, type MakeWholeArgs } from './make-whole-scan.ts';

/** As that of the threads that filled it. */
const LOWERED_BY = 10;

/**
 * Without locks, which a transaction that makes indexes would wait for: it writes new pages, and leaves
 * those of the rows as they are.
 */
const withoutLocks = (file: string): string => `${pathToFileURL(file).href}?immutable=1`;

type Threads = { indexing: ScanThread; reading: ScanThread };

const makeWholeIn = async (
  { indexing, reading }: Threads,
  file: string,
  wantsChecksum: boolean,
): Promise<ReadModelsChecksum | undefined> => {
  const opened = Promise.withResolvers<void>();
  const begin = () => opened.promise;
  const checksumBeside = () => {
    const args: ChecksumArgs = { file: withoutLocks(file) };
    const calls = { opened: async () => opened.resolve() };
    return resultOf(reading.run<never, ReadModelsChecksum>({ module: CHECKSUM_SCAN, args, calls }));
  };
  if (!wantsChecksum) opened.resolve();
  const args: MakeWholeArgs = { file };
  try {
    const [checksum] = await Promise.all([
      wantsChecksum ? checksumBeside() : undefined,
      resultOf(indexing.run<never, void>({ module: MAKE_WHOLE_SCAN, args, calls: { begin } })),
    ]);
    return checksum;
  } catch (error) {
    // The other one may still have the file open, or wait for the one that has failed.
    await Promise.all([indexing.end(), reading.end()]);
    throw unavailable(error);
  }
};

/**
 * Makes the indexes of a file that nobody else has open, and puts all of it on the disk; gives the checksum
 * of its documents where it is wanted. Throws ReadModelsUnavailable.
 */
export const makeWhole = (
  file: string,
  wantsChecksum: boolean,
): Promise<ReadModelsChecksum | undefined> =>
  withScanThread(LOWERED_BY, (indexing) =>
    withScanThread(LOWERED_BY, (reading) =>
      makeWholeIn({ indexing, reading }, file, wantsChecksum),
    ),
  );
