/**
 * GET /api/v1/payments/{paymentId} for a token that was verified before and a document that is known
 * to be up to date, in one process with the projector: get-payment.ts without a wait (gaps §9). What
 * cannot be said at once goes that way.
 */
import type { AuthAtOnce } from '../shared/http/auth/hooks.ts';
import { ROUTES } from '../shared/http/route-table.ts';
import type { AtOnce } from '../shared/http/server/at-once.ts';
import type { DocumentAtOnce, ReadModelsReader } from '../shared/read-models/port.ts';

/** `isBehind` as of now: true where the document may be older than the log. */
export type DepsAtOnce = {
  getAtOnce: NonNullable<ReadModelsReader['getAtOnce']>;
  isBehind(paymentId: string): boolean;
};

/** An address with a query or a percent escape is the framework's. */
const ADDRESS = /^\/api\/v1\/payments\/([A-Za-z0-9_-]{1,32})$/;

const documentOf = (
  { getAtOnce, isBehind }: DepsAtOnce,
  paymentId: string,
  merchantId: string,
): DocumentAtOnce | undefined => {
  if (isBehind(paymentId)) return undefined;
  try {
    const document = getAtOnce(paymentId, merchantId);
    return document?.parked ? undefined : document;
  } catch {
    // The framework's road meets whatever it is again, and words it; nobody would catch it here.
    return undefined;
  }
};

/** The GET of one payment, as far as it can be served at once. */
export const paymentAtOnce = (deps: DepsAtOnce, auth: AuthAtOnce): AtOnce => ({
  route: ROUTES.getPayment.path,
  find: (request, isFull) => {
    const paymentId = ADDRESS.exec(request.url ?? '')?.[1];
    if (paymentId === undefined) return undefined;
    const principal = auth.principalOf(request);
    if (principal === undefined) return undefined;
    const { merchantId } = principal;
    if (isFull(merchantId)) return undefined;
    const document = documentOf(deps, paymentId, merchantId);
    // Last: a request that goes on to the framework draws there, and only there.
    if (document === undefined || !auth.draw(merchantId)) return undefined;
    const { revision, body, bodyBytes } = document;
    return { etag: `"${revision}"`, body, bodyBytes, paymentId, merchantId };
  },
});
