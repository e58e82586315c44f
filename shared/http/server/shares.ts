/** Limits that requests share (places.ts, unread.ts). One merchant never takes all. */

/** One part in so many. */
const OF_A_MERCHANT = 2;
/** Requests without a token together: anyone can send those, a merchant included (gaps §11). */
const OF_UNAUTHENTICATED = 4;

/** `merchantId` is undefined for a request without a token. */
type Shares = {
  isFull(merchantId: string | undefined): boolean;
  /** A negative amount gives it back. */
  take(merchantId: string | undefined, amount: number): void;
  taken(): number;
};

export type Lifecycle = {
  readonly places: Shares;
  readonly unread: Shares;
  /** Not ready, and each response is the last of its connection. */
  closing: boolean;
  /** New requests are 503. */
  refusing: boolean;
};

/** A merchant may take `ofOneMin` in any case, so that a small `max` is not halved. */
export const createShares = (max: number, ofOneMin = 1): Shares => {
  const ofOneMax = Math.max(Math.ceil(max / OF_A_MERCHANT), ofOneMin);
  const byMerchant = new Map<string | undefined, number>();
  let taken = 0;
  return {
    isFull: (merchantId) => {
      const ownMax = merchantId === undefined ? Math.ceil(max / OF_UNAUTHENTICATED) : ofOneMax;
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
