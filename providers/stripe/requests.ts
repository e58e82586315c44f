/** A key works at one endpoint only, hence the suffixes; the money request has the bare id. */
import type { CardInput } from '../../shared/payment/card.ts';
import type { ThreeDSecure } from '../../shared/payment/fields.ts';
import type { OperationQuestion, ProviderOperation } from '../port.ts';

export type StripeRequest = {
  method: 'GET' | 'POST';
  path: string;
  params: Readonly<Record<string, string>>;
  idempotencyKey?: string;
};

type Create = Extract<ProviderOperation, { kind: 'AUTHORIZE' | 'SALE' }>;

/** Stripe appends the suffix to the account's prefix and `* `; in all 22 characters. */
const SUFFIX_MAX = 10;

/** Latin without `< > \ ' " *`, at least one letter: anything else would fail the payment. */
export const suffixOf = (descriptor: string | undefined): string | undefined => {
  const kept = (descriptor ?? '')
    .normalize('NFKD')
    .replace(/[^ -~]/g, '')
    .replace(/[<>\\'"*]/g, '')
    .replace(/ +/g, ' ')
    .trim()
    .slice(0, SUFFIX_MAX)
    .trim();
  return /[A-Za-z]/.test(kept) ? kept : undefined;
};

const post = (
  path: string,
  idempotencyKey: string | undefined,
  params: Record<string, string | undefined>,
): StripeRequest => ({
  method: 'POST',
  path,
  params: Object.fromEntries(
    // Stripe keeps no empty value.
    Object.entries(params).filter((entry): entry is [string, string] => Boolean(entry[1])),
  ),
  ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
});

const intentPath = (reference: string): string => `/v1/payment_intents/${reference}`;

/** The names by which the driver finds an operation again: a merchant's own must not stand there. */
const OWN_NAME = /^(operation|payment|captureOperation|voidOperation|fencedOperation)Id$/;

const merchantMetadata = ({ metadata = {}, merchantReference }: Create): Record<string, string> =>
  Object.fromEntries(
    Object.entries({ ...metadata, ...(merchantReference && { merchantReference }) })
      .filter(([name]) => !OWN_NAME.test(name))
      .map(([name, value]) => [`metadata[${name}]`, value]),
  );

/** Says that a fence of the create will be named; an intent of an earlier version has no word of it. */
const NOT_FENCED = 'none';

/** No card, not confirmed: nothing can move. */
export const openIntent = (operation: Create): StripeRequest =>
  post('/v1/payment_intents', `${operation.operationId}-open`, {
    amount: String(operation.amount),
    currency: operation.currency.toLowerCase(),
    // Newer versions of the API default to automatic_async.
    capture_method: operation.kind === 'SALE' ? 'automatic' : 'manual',
    'payment_method_types[0]': 'card',
    customer: operation.customer,
    ...merchantMetadata(operation),
    'metadata[operationId]': operation.operationId,
    'metadata[paymentId]': operation.paymentId,
    'metadata[fencedOperationId]': NOT_FENCED,
    description: operation.merchantReference,
    statement_descriptor_suffix: suffixOf(operation.descriptor),
  });

/** Stripe would reject another form, and with it the payment. */
const EMAIL = /^[\w.%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$/;

/** Only Stripe stores it; no key, so that no hash of it is kept. */
export const makePaymentMethod = (
  card: CardInput,
  { billing, consumer }: Pick<Create, 'billing' | 'consumer'> = {},
): StripeRequest => {
  const { address } = billing ?? {};
  const { email = '' } = consumer ?? {};
  return post('/v1/payment_methods', undefined, {
    type: 'card',
    'card[number]': card.number,
    'card[exp_month]': String(Number(card.expiryMonth)),
    'card[exp_year]': card.expiryYear,
    'card[cvc]': card.cvv,
    'billing_details[name]': card.holderName,
    'billing_details[email]': EMAIL.test(email) ? email : undefined,
    'billing_details[address][line1]': address?.street,
    'billing_details[address][city]': address?.city,
    'billing_details[address][state]': address?.state,
    'billing_details[address][postal_code]': address?.zip,
    'billing_details[address][country]': address?.country?.toUpperCase(),
  });
};

export const isConfirmationToken = (token: string): boolean => token.startsWith('ctoken_');

export const confirmIntent = (
  { operationId, card, authentication, initiatedBy }: Create,
  reference: string,
  method: string,
): StripeRequest => {
  const { threeDSecure } = card.reveal();
  return post(`${intentPath(reference)}/confirm`, operationId, {
    [isConfirmationToken(method) ? 'confirmation_token' : 'payment_method']: method,
    ...(authentication
      ? // Without it a ConfirmationToken would want Stripe.js in place of an address.
        { return_url: authentication.returnUrl, use_stripe_sdk: 'false' }
      : // Without it the intent would wait for a shopper who is led nowhere.
        { error_on_requires_action: 'true' }),
    off_session: initiatedBy === 'MERCHANT' ? 'true' : undefined,
    'expand[0]': 'latest_charge',
    ...(threeDSecure && authenticated(threeDSecure)),
  });
};

const OF_3DS = 'payment_method_options[card][three_d_secure]';
const authenticated = ({ version, eci, cryptogram, transactionId, exemption }: ThreeDSecure) => ({
  [`${OF_3DS}[version]`]: version,
  [`${OF_3DS}[electronic_commerce_indicator]`]: eci,
  [`${OF_3DS}[cryptogram]`]: cryptogram,
  [`${OF_3DS}[transaction_id]`]: transactionId,
  [`${OF_3DS}[exemption_indicator]`]: exemption?.toLowerCase(),
});

/** A cancel takes no metadata: the ledger finds the void by this name. */
export const nameVoid = (operationId: string, reference: string): StripeRequest =>
  post(intentPath(reference), `${operationId}-name`, { 'metadata[voidOperationId]': operationId });

/** The same bytes each time, so that Stripe can replay its response. */
export const followUpRequest = (
  { operationId, paymentId, kind, amount }: FollowUpOf,
  reference: string,
): StripeRequest => {
  if (kind === 'CAPTURE') {
    return post(`${intentPath(reference)}/capture`, operationId, {
      amount_to_capture: String(amount),
      'metadata[captureOperationId]': operationId,
      'expand[0]': 'latest_charge',
    });
  }
  if (kind === 'VOID') {
    return post(`${intentPath(reference)}/cancel`, operationId, {
      cancellation_reason: 'requested_by_customer',
      'expand[0]': 'latest_charge',
    });
  }
  return post('/v1/refunds', operationId, {
    payment_intent: reference,
    amount: String(amount),
    'metadata[operationId]': operationId,
    'metadata[paymentId]': paymentId,
  });
};
type FollowUpOf = Pick<OperationQuestion, 'operationId' | 'paymentId' | 'amount'> & {
  kind: 'CAPTURE' | 'VOID' | 'REFUND';
};

/** Before the cancel, which takes no metadata: the Dashboard can choose its reason as well. */
export const nameFence = (operationId: string, reference: string): StripeRequest =>
  post(intentPath(reference), undefined, { 'metadata[fencedOperationId]': operationId });

/** A canceled intent is final. No key: a repeat does nothing, and Stripe would replay its own 500 for a day. */
export const cancelAsFence = (reference: string): StripeRequest =>
  post(`${intentPath(reference)}/cancel`, undefined, { cancellation_reason: ABANDONED });
export const ABANDONED = 'abandoned';

/** Takes the Idempotency-Key of a follow-up for an update that moves nothing. */
export const takeKey = (operationId: string, reference: string): StripeRequest =>
  post(intentPath(reference), operationId, { 'metadata[fencedOperationId]': operationId });

const get = (path: string, params: Record<string, string> = {}): StripeRequest => ({
  method: 'GET',
  path,
  params,
});

export const getIntent = (reference: string): StripeRequest =>
  get(intentPath(reference), { 'expand[0]': 'latest_charge' });

export const searchIntent = (operationId: string): StripeRequest =>
  get('/v1/payment_intents/search', { query: `metadata['operationId']:'${operationId}'` });

/** The newest that this service opened. */
export const searchOurs = (): StripeRequest =>
  get('/v1/payment_intents/search', {
    query: "-metadata['operationId']:null",
    limit: '100',
    'expand[0]': 'data.latest_charge',
  });

export const getToken = (token: string): StripeRequest =>
  get(`/v1/${isConfirmationToken(token) ? 'confirmation_tokens' : 'payment_methods'}/${token}`);

const LIST_PAGE = 100;
/** The request for the page after an object; for the first page without one. */
export type PageOf = (after?: string) => StripeRequest;
const pages =
  (path: string, params: Record<string, string>): PageOf =>
  (after) =>
    get(path, { ...params, limit: String(LIST_PAGE), ...(after && { starting_after: after }) });

export type Window = { from: number; to: number };
const created = ({ from, to }: Window) => ({ 'created[gte]': `${from}`, 'created[lt]': `${to}` });
/** By its PaymentIntent, or each with it. */
type Of = { reference: string } | Window;
const madeIn = (of: Of): Record<string, string> =>
  'reference' in of
    ? { payment_intent: of.reference }
    : { ...created(of), 'expand[0]': 'data.payment_intent' };

export const listRefunds = (of: Of): PageOf => pages('/v1/refunds', madeIn(of));
export const listDisputes = (of: Of): PageOf => pages('/v1/disputes', madeIn(of));
export const listIntents = (window: Window): PageOf =>
  pages('/v1/payment_intents', { ...created(window), 'expand[0]': 'data.latest_charge' });
/** Events of what ended an authorization, among others; Stripe keeps them for 30 days. */
export const listEnds = (fromSecond: number): PageOf =>
  pages('/v1/events', {
    'types[0]': 'payment_intent.succeeded',
    'types[1]': 'payment_intent.canceled',
    'created[gte]': String(fromSecond),
  });
