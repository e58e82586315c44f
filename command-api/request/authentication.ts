/** The wish for the shopper's authentication beside a card (gaps §21). */
import { object, requiredText } from '../../shared/http/fields.ts';
import { addressKinds, isPublicHttps } from '../../shared/webhooks/addresses.ts';

const NOT_PUBLIC = 'must be a public https address';
export const RETURN_URL_NOT_PUBLIC = `paymentMethod.card.authentication.returnUrl ${NOT_PUBLIC}`;

/** Taken with the simulator alone, whose page is opened on the same machine. */
export const isLocal = (text: string): boolean => {
  if (!/^http:\/\//i.test(text) || !URL.canParse(text)) return false;
  return ['localhost', '127.0.0.1'].includes(new URL(text).hostname);
};

const kindOf = addressKinds([]);

export const Authentication = object({
  returnUrl: requiredText().refine((text) => isLocal(text) || isPublicHttps(text, kindOf), {
    error: NOT_PUBLIC,
  }),
}).meta({ id: 'Authentication' });
