/**
 * The places of requests to endpoints, and how long a request may hold one (gaps §20). An endpoint that
 * responds takes any of them. One that was not heard of lately, or did not respond last, shares a part, so
 * that however many hang, the others find a place.
 */
import { createPermits } from './permits.ts';

/**
 * `well`: it responded to its last request, with any status; `silent`: no request to it ended of late, as
 * far as this process knows; `doubtful`: it did not respond to the last one, or is FAILING.
 */
export type Standing = 'well' | 'silent' | 'doubtful';

const PLACES = 256;
const SILENT_PLACES = 128;
const DOUBTFUL_PLACES = 64;
/** A merchant has at most so large a part of each. */
const MERCHANT_PART = 1 / 16;

/** How long a request may take, in milliseconds: to a silent endpoint it holds no place for longer. */
export const RESPONSE_MS_MAX: Readonly<Record<Standing, number>> = {
  well: 15_000,
  silent: 3_000,
  doubtful: 15_000,
};

/** For so long, in milliseconds, a response, or its lack, says something about the next one. */
export const SILENT_AFTER_MS = 600_000;

export type Places = {
  /** Runs a request in a place. Throws the signal's reason where it is aborted first. */
  with<T>(
    standing: Standing,
    merchantId: string,
    signal: AbortSignal,
    request: () => Promise<T>,
  ): Promise<T>;
};

const shared = (max: number) => createPermits(max, max * MERCHANT_PART);

export const createPlaces = (): Places => {
  const all = shared(PLACES);
  const parts = { silent: shared(SILENT_PLACES), doubtful: shared(DOUBTFUL_PLACES) };
  return {
    with: (standing, merchantId, signal, request) => {
      const inAny = () => all.with(merchantId, signal, request);
      return standing === 'well' ? inAny() : parts[standing].with(merchantId, signal, inAny);
    },
  };
};
