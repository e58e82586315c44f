/** Rebuild: fills a file beside the served one, which it then replaces. */
import { ReadModelsUnavailable, RebuildRunning } from '../errors.ts';
import type { NextGeneration, ReadModels } from '../port.ts';
import { removeFile, unavailable } from './connection.ts';

type NextGenerationOptions = {
  file: string;
  open(file: string): ReadModels;
  /** The module and the arguments by which another thread opens it. */
  elsewhere(file: string): { module: string; args: unknown };
  isOpen(): boolean;
  /** Puts the file in the place of the served one. Throws ReadModelsUnavailable. */
  replaceBy(file: string): Promise<void>;
};

/** One generation at a time: see ReadModelsRebuild. */
export const createGenerations = ({
  file,
  open,
  elsewhere,
  isOpen,
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
      apply: (...batch) => next.apply(...batch),
      parked: (...page) => next.parked(...page),
      inspect: (paymentId) => next.inspect(paymentId),
      checksum: () => next.checksum(),
      handOver: async (step) => {
        await next.close();
        try {
          return await step(elsewhere(file));
        } catch (error) {
          throw unavailable(error);
        } finally {
          next = open(file);
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
