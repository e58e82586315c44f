/** Rebuild: fills a file beside the served one, which it then replaces. */
import { DatabaseSync } from 'node:sqlite';
import { ReadModelsUnavailable, RebuildRunning } from '../errors.ts';
import type { NextGeneration, ReadModels, ReadModelsChecksum } from '../port.ts';
import { removeFile, unavailable } from './connection.ts';
import { makeWhole } from './make-whole.ts';

/** The file, and what the checks of its rows are made with; `isEmpty` while nothing was filled into it. */
export type FillingArgs = {
  file: string;
  secrets: readonly [string, ...string[]];
  isEmpty: boolean;
};

const ELSEWHERE = new URL('./generation-elsewhere.ts', import.meta.url).href;

/**
 * Takes the write-ahead log away, for nobody reads a file while it is filled: so each page is written once.
 * Only a connection that is alone can do it.
 */
const withoutWal = (file: string): void => {
  try {
    using db = new DatabaseSync(file);
    db.exec('PRAGMA journal_mode = MEMORY');
  } catch (error) {
    throw unavailable(error);
  }
};

type NextGenerationOptions = {
  /** The path of the next generation's file. */
  file: string;
  secrets: FillingArgs['secrets'];
  open(file: string): ReadModels;
  /** Whether the served file is open, and its checkpoint. */
  isOpen(): boolean;
  checkpoint: ReadModels['checkpoint'];
  /** Puts the file in the place of the served one. Throws ReadModelsUnavailable. */
  replaceBy(file: string): Promise<void>;
};

/** Opens one generation at a time: see ReadModelsRebuild. */
export const createGenerations = ({
  file,
  secrets,
  open,
  isOpen,
  checkpoint,
  replaceBy,
}: NextGenerationOptions) => {
  let rebuilding = false;

  const openGeneration = async (): Promise<NextGeneration> => {
    if (rebuilding) throw new RebuildRunning('the read models are being rebuilt already');
    if (!isOpen()) throw new ReadModelsUnavailable('the read models are closed');
    rebuilding = true;
    let next: ReadModels;
    try {
      removeFile(file);
      next = open(file);
    } catch (error) {
      rebuilding = false;
      throw unavailable(error);
    }
    /** Made with the indexes, until anything is written after them. */
    let early: ReadModelsChecksum | undefined;

    /** Where events go on coming, more is written, and a checksum of before would be for nothing. */
    const fillEmpty = async <T>(step: () => Promise<T>): Promise<T> => {
      const before = await checkpoint();
      withoutWal(file);
      const result = await step();
      const isIdle = (await checkpoint()) === before;
      early = await makeWhole(file, isIdle);
      return result;
    };

    let ended = false;
    const end = async (): Promise<void> => {
      if (ended) return;
      ended = true;
      await next.close();
      removeFile(file);
      rebuilding = false;
    };
    return {
      checkpoint: () => next.checkpoint(),
      load: (paymentId) => next.load(paymentId),
      apply: (...batch) => {
        early = undefined;
        return next.apply(...batch);
      },
      parked: (...page) => next.parked(...page),
      inspect: (paymentId) => next.inspect(paymentId),
      checksum: async () => early ?? next.checksum(),
      handOver: async (step) => {
        const before = await next.checkpoint();
        const isEmpty = before === null;
        await next.close();
        const args: FillingArgs = { file, secrets, isEmpty };
        const fill = () => step({ module: ELSEWHERE, args });
        try {
          return await (isEmpty ? fillEmpty(fill) : fill());
        } catch (error) {
          throw unavailable(error);
        } finally {
          next = open(file);
          if (!isEmpty && (await next.checkpoint()) !== before) early = undefined;
        }
      },
      serve: async () => {
        await next.close();
        await replaceBy(file);
      },
      end,
    };
  };

  return openGeneration;
};
