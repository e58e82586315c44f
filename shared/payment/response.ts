/** What merchants see of a payment: the bodies of responses, and what is said of a declined attempt. */
import {
  ADVICE_BY_CODE,
  type Failure,
  type FailureData,
  failureData,
  type MaskedCard,
  type OpenCard,
  type OpenDetails,
  type PaymentDetails,
  type PaymentResponse,
  type PersonalGroup,
  paymentResponse,
  personalGroup,
  type Transaction,
} from './fields.ts';

/** The response without what is sealed. */
export type SealedPayment = Omit<PaymentResponse, 'paymentMethod' | keyof PaymentDetails> &
  OpenDetails & {
    paymentMethod: { type: 'CARD'; card: OpenCard; encryptedCard: Omit<OpenCard, 'last4'> };
  };

/** What a box held, or why it shows nothing; `erasedAt` is unknown where a log lost the erasure. */
export type OpenedText<T> =
  | { text: T }
  | { erased: true; erasedAt?: string | undefined }
  | { unavailable: true }
  | { sealed: true };

const PREFIXES: Record<Transaction['type'], string> = {
  AUTH: 'AUTH_',
  SALE: 'SALE_',
  CAPTURE: 'CAPT_',
  VOID: 'VOID_',
  REFUND: 'REFN_',
};

/** The public id of an attempt: the prefix of its type and the 26 characters of its operation id. */
export const transactionId = (type: Transaction['type'], operationId: string): string =>
  PREFIXES[type] + operationId.slice(-26);

/** The provider's own advice, else that of the failure code: also for events stored without one. */
export const adviceOf = ({ failureCode, advice }: FailureData): Failure['advice'] =>
  advice ?? ADVICE_BY_CODE[failureCode];

const FAILURE_FIELDS = Object.keys(failureData.shape) as (keyof FailureData)[];

/** Copies the given fields of a failure and no others. */
export const givenFailure = (failure: FailureData): FailureData =>
  Object.fromEntries(
    FAILURE_FIELDS.flatMap((field) => (failure[field] ? [[field, failure[field]]] : [])),
  ) as FailureData;

export const failureOf = (data: FailureData): Failure => {
  const advice = adviceOf(data);
  return { ...givenFailure({ ...data, advice }), advice };
};

const PERSONAL = personalGroup.shape;

/** A create's texts of a person apart from the rest; the names of items by their place. */
export const takeApart = (given: { card: MaskedCard; details: PaymentDetails }) => {
  const { holderName, ...card } = given.card;
  const { productItems, ...others } = given.details;
  const group: Record<string, unknown> = { holderName };
  const details: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(others))
    (name in PERSONAL ? group : details)[name] = value;
  if (productItems !== undefined) {
    group.itemNames = productItems.map(({ name }) => name);
    details.productItems = productItems.map(({ name: _name, ...item }) => item);
  }
  return { card, details: details as OpenDetails, group: group as PersonalGroup };
};

/** Its inverse, in the order of stored fields: the bytes are those of texts that were never apart. */
export const putBack = <D extends OpenDetails>(
  { card, details }: { card: OpenCard; details: D },
  opened: OpenedText<PersonalGroup>,
) => {
  const word = 'erased' in opened ? 'ERASED' : 'sealed' in opened ? 'SEALED' : 'UNAVAILABLE';
  const group: PersonalGroup = 'text' in opened ? opened.text : { holderName: word };
  const { holderName, itemNames, ...texts } = group;
  const { last4, threeDSecure, ...before } = card;
  const productItems = details.productItems?.map(({ goodsType, id, ...item }, at) => {
    return { goodsType, id, name: itemNames?.[at] ?? word, ...item };
  });
  return {
    card: { ...before, holderName, last4, threeDSecure },
    details: { ...details, ...texts, productItems },
  };
};

const FIELDS = Object.keys(paymentResponse.shape) as (keyof PaymentResponse)[];
/** Parsed, since an object made field by field is four times slower to write as text. */
const EMPTY = JSON.parse(`{${FIELDS.map((field) => `"${field}":null`).join()}}`);

const shownOf = <P extends object>(payment: P): P => {
  const response = { ...EMPTY };
  for (const field of FIELDS) response[field] = payment[field as keyof P];
  return response;
};

/** The fields that merchants see of a payment, in the order of the schema. */
export const responseOf = (payment: SealedPayment, opened: OpenedText<PersonalGroup>) => {
  const { card, details } = putBack({ card: payment.paymentMethod.card, details: payment }, opened);
  const { last4: _last4, ...encryptedCard } = card;
  const paymentMethod = { ...payment.paymentMethod, card, encryptedCard };
  const personalData = 'text' in opened ? undefined : opened;
  // Earlier failures are for auditors alone, and no field of the response.
  return shownOf({ ...details, paymentMethod, personalData } as unknown as PaymentResponse);
};

/** The JSON text of the response; no other code serializes it. */
export const bodyOf = (payment: SealedPayment, opened: OpenedText<PersonalGroup>): string =>
  JSON.stringify(responseOf(payment, opened));

/** The text that is kept: with the box in the place of what it holds. */
export const keptBodyOf = <P extends SealedPayment & { personal: unknown }>(payment: P): string =>
  JSON.stringify(Object.assign(shownOf(payment), { personal: payment.personal }));

/** With the address that the shopper has to be sent to, for the body of the 202 (gaps §21). */
export const withAddress = <P extends SealedPayment>(payment: P, url: string): P => {
  if (payment.nextAction === undefined) throw new Error('the payment waits for no shopper');
  const { type, expiresAt } = payment.nextAction;
  return { ...payment, nextAction: { type, url, expiresAt } };
};

/** The body of the 402 for a payment whose create failed (interface, "Payment failure response"); else undefined. */
export const failureBodyOf = (payment: SealedPayment) => {
  const { paymentId, merchantReference, metadata, amount, currency, status } = payment;
  const failure = payment.transactions[0]?.failure;
  if (failure === undefined) return undefined;
  return { paymentId, merchantReference, metadata, amount, currency, status, failure };
};
