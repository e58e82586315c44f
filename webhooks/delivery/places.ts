import { createTurns } from '../../shared/runtime/fair-turns.ts';

/** `well`: its last request had a response; `doubtful`: it had none, or it is FAILING; `silent`: none of late. */
export type Standing = 'well' | 'silent' | 'doubtful';

const PLACES = 256;
const SILENT_PLACES = 128;
const DOUBTFUL_PLACES = 64;
const OF_ONE_MAX = 1 / 16;

/** A silent endpoint holds no place for longer (gaps §20). */
export const responseMsMax = (standing: Standing): number =>
  standing === 'silent' ? 3_000 : 15_000;

/** For so long a response, or its lack, says something about the next one. */
export const SILENT_AFTER_MS = 600_000;

const shared = (places: number) => createTurns(places, places * OF_ONE_MAX);

/** Well endpoints find a place however many others hang. */
export const createPlaces = () => {
  const all = shared(PLACES);
  const parts = { silent: shared(SILENT_PLACES), doubtful: shared(DOUBTFUL_PLACES) };
  return {
    with: <T>(
      standing: Standing,
      merchantId: string,
      signal: AbortSignal,
      request: () => Promise<T>,
    ): Promise<T> => {
      const inAny = () => all.with(merchantId, signal, request);
      return standing === 'well' ? inAny() : parts[standing].with(merchantId, signal, inAny);
    },
  };
};

export type Places = ReturnType<typeof createPlaces>;
