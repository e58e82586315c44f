/** The responses that routes share in the API documents. */
import { isOfMerchants } from '../../shared/http/auth/tokens.ts';
import type { RequestForm, ResponseForm } from '../../shared/http/route.ts';
import { type RoutePlace, SIGNED } from '../../shared/http/route-table.ts';

type Responses = Record<number, ResponseForm>;

const LATER = ['Retry-After'] as const;

const BEFORE_THE_BODY: Responses = {
  401: { description: 'No token, or not a good one.', headers: ['WWW-Authenticate'] },
  429: { description: 'Too many requests.', headers: LATER },
};

const FOR_MERCHANTS: Responses = {
  ...BEFORE_THE_BODY,
  500: {
    description: 'A fault of ours. A POST may have gone on: repeat it under its key.',
    unrecorded: true,
  },
  503: {
    description: 'The service cannot answer now. Nothing was stored unless `details` say so.',
    headers: LATER,
  },
};

const FOR_OTHERS: Responses = {
  ...BEFORE_THE_BODY,
  500: { description: 'A fault of ours, or an event that cannot be read; `details` name it.' },
  503: { description: 'The service cannot answer now.', headers: LATER },
};

const TOO_LARGE = { 413: { description: 'The body is above 64 KiB.' } };

/** Their document shows each of their responses; of other routes there is one example. */
export const isForMerchants = ({ scope }: RoutePlace): boolean =>
  scope !== SIGNED && isOfMerchants(scope);

const forbidden = (place: RoutePlace, { person, allMerchants }: RequestForm): string => {
  const of = allMerchants ? 'one' : isForMerchants(place) && 'no single';
  return `The token lacks the scope${person ? ' or a `sub`' : ''}${of ? `, or is for ${of} merchant` : ''}.`;
};

const malformed = (place: RoutePlace): string => {
  if (isForMerchants(place)) return 'The request is malformed; `details` name what is wrong.';
  return place.method === 'GET'
    ? 'A parameter is malformed, or not known.'
    : 'The paymentId or the body is malformed.';
};

export const mayBeTooLarge = ({ method, path }: RoutePlace, form: RequestForm): boolean =>
  (method === 'POST' || method === 'PATCH') &&
  (form.body !== undefined || path.includes(':paymentId'));

export const standardResponses = (place: RoutePlace, form: RequestForm): Responses => {
  if (place.scope === SIGNED) return mayBeTooLarge(place, form) ? TOO_LARGE : {};
  const thing = form.paymentId === undefined ? 'webhook endpoint' : 'payment';
  const missing = isForMerchants(place)
    ? `The merchant has no such ${thing}.`
    : `No such ${thing} to be seen.`;
  return {
    ...(isForMerchants(place) ? FOR_MERCHANTS : FOR_OTHERS),
    403: { description: forbidden(place, form) },
    ...((form.query ?? form.paymentId ?? form.read) !== undefined && {
      400: { description: malformed(place) },
    }),
    ...((form.paymentId ?? form.endpointId) !== undefined && { 404: { description: missing } }),
    ...(mayBeTooLarge(place, form) && TOO_LARGE),
  };
};
