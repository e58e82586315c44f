/**
 * What the requests of a process share, and how much of it each merchant has: the places of
 * MAX_IN_FLIGHT (places.ts) and the memory of responses that are on their way (unread.ts). One merchant
 * never has all of it, so that the others are served whatever it does.
 */

/** Of all there is, one merchant has at most one part in so many. */
const OF_A_MERCHANT = 2;
/**
 * All requests without a token together: anybody can send those, a merchant included. A notice is known
 * to be signed only once its body is there (gaps §11).
 */
const OF_NOBODY = 4;

/** `merchantId` is undefined for a request without a token. */
export type Shares = {
  /** Whether all is taken, or all that this merchant may have. */
  isFull(merchantId: string | undefined): boolean;
  /** Takes what was found to be there; an amount below zero gives it back. */
  take(merchantId: string | undefined, amount: number): void;
  /** What all have of it. */
  taken(): number;
};

/** What all requests of a server share, and whether it is on its way out. */
export type Lifecycle = {
  /** Of MAX_IN_FLIGHT. */
  readonly places: Shares;
  /** Of the bytes of responses that are on their way. */
  readonly unread: Shares;
  closing: boolean;
};

/**
 * Shares of `max` in all; each merchant, and the requests without a token, may have one place at least. A
 * merchant may have `ofOneMin` in any case, so that a small limit is not halved.
 */
export const createShares = (max: number, ofOneMin = 1): Shares => {
  const ofOneMax = Math.max(Math.ceil(max / OF_A_MERCHANT), ofOneMin);
  const byMerchant = new Map<string | undefined, number>();
  let taken = 0;
  return {
    isFull: (merchantId) => {
      const ownMax = merchantId === undefined ? Math.ceil(max / OF_NOBODY) : ofOneMax;
      return taken >= max || (byMerchant.get(merchantId) ?? 0) >= ownMax;
    },
    take: (merchantId, amount) => {
      const own = (byMerchant.get(merchantId) ?? 0) + amount;
      taken += amount;
      if (own === 0) byMerchant.delete(merchantId);
      else byMerchant.set(merchantId, own);
    },
    taken: () => taken,
  };
};
