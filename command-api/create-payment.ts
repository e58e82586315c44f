/** POST /api/v1/payments: a new one (repeats.ts) goes to operate.ts (gaps §6 to §8) under its intent's id. */
import { sealBox } from '../personal-data/box.ts';
import type { CallDetails } from '../providers/port.ts';
import { type Identities, recognisedBy } from '../shared/http/idempotency.ts';
import type { Begins } from '../shared/http/request-budget.ts';
import {
  brandOf,
  type CardInput,
  CardSecret,
  maskCard,
  maskToken,
  type TokenInput,
} from '../shared/payment/card.ts';
import type { CreateCommand, MerchantRules } from '../shared/payment/commands.ts';
import { decide } from '../shared/payment/decide.ts';
import { streamOf } from '../shared/payment/events.ts';
import type { MaskedCard, PaymentDetails } from '../shared/payment/fields.ts';
import { takeApart } from '../shared/payment/response.ts';
import { createOf } from '../shared/payment/state.ts';
import type { CommandDeps } from './deps.ts';
import { claimReference } from './merchant-reference.ts';
import { nothingUnderKey, type OperationRequest, operate } from './operate.ts';
import { responseUnlessFenced } from './recovery/contradiction.ts';
import { findCreate, type NextCreate, respondOrBegin } from './repeats.ts';
import { detailsOfHolders, type LongText } from './request/card-texts.ts';
import type { CreateRequest } from './request/payment-request.ts';
import { isLocal, RETURN_URL_NOT_PUBLIC } from './request/schemas.ts';
import { type CommandResponse, rejection, tryLater } from './responses.ts';

/** Its page is on this machine, and may lead back to it (gaps §21). */
const isSimulated = ([name = '']: readonly string[]): boolean =>
  /^(simulator|http:(localhost|127\.0\.0\.1)(:.*)?)$/.test(name);

type ShownCard = Pick<CreateCommand, 'numberBrand'> & { card: MaskedCard };

/** The card secret lives in `call`, no longer than the request's command. */
type Attempt = Begins & {
  command: Omit<
    CreateCommand,
    'operationId' | 'paymentId' | 'personal' | 'details' | keyof ShownCard
  > & {
    details: PaymentDetails;
  };
  shown: ShownCard | TokenInput;
  longTexts: readonly LongText[];
  call: CallDetails;
};

type SentCreate = Begins & {
  request: CreateRequest;
  key: string | undefined;
  rules: MerchantRules;
};

export const createPayment = async (
  deps: CommandDeps,
  sent: SentCreate,
): Promise<CommandResponse> => {
  const { identities, providers } = deps;
  const { authentication } = sent.request;
  if (authentication && isLocal(authentication.returnUrl) && !isSimulated(providers))
    return rejection('INVALID_REQUEST', [RETURN_URL_NOT_PUBLIC]);
  const { key } = sent;
  const attempt = attemptOf(deps, sent);
  const find = () => findCreate(deps, attempt, key);
  const begin = (next: NextCreate) => createNew(deps, attempt, next);
  const steps = () => respondOrBegin(deps, sent, find, begin);
  if (key === undefined) return steps();
  const first = identities.paymentIdOf(attempt.sender.merchantId, key, 1);
  return deps.queues.run(`create ${first}`, steps);
};

const attemptOf = (
  { identities, providers }: CommandDeps,
  { sender, request, key, rules, budget, reach }: SentCreate,
): Attempt => {
  const { merchantId } = sender;
  const { card, authentication, longTexts = [], ...fields } = request;
  const { captureNow, details } = fields;
  const shown = 'token' in card ? card : shownCardOf(card);
  const { identity, previousIdentity } = recognisedBy(identities, (by) => ({
    fingerprint: by.fingerprintOf(comparableCreate(by, merchantId, request, shown)),
  }));
  // An earlier create under the key is found by its derived id, so the older secret hashes no key.
  const keyHash = key !== undefined && identities.keyHashOf(merchantId, 'create', '', key);
  const command = {
    kind: 'create',
    merchantId,
    ...fields,
    identity: keyHash ? { ...identity, keyHash } : identity,
    previousIdentity,
    authentication: authentication && (true as const),
    rules,
    providers,
  } as const;
  const call: CallDetails = {
    kind: captureNow ? 'SALE' : 'AUTHORIZE',
    card: new CardSecret(card),
    descriptor: details.descriptor,
    merchantReference: details.merchantReference,
    metadata: details.metadata,
    authentication,
    billing: details.billing,
    consumer: details.consumer,
    initiatedBy: details.source?.initiatedBy,
  };
  return { sender, command, shown, longTexts, call, budget, reach };
};

/** The reference that stands for one payment alone (gaps §8), as a key does. */
export const uniqueReferenceOf = ({
  rules,
  details,
}: Pick<CreateCommand, 'rules'> & {
  details: Pick<PaymentDetails, 'merchantReference'>;
}): string | undefined =>
  rules.merchantReference === 'unique' ? details.merchantReference : undefined;

/**
 * Undefined if another request has the id or the reference: look at the payments again. Its texts of a person
 * are sealed once, however often the append is tried. Throws KeysUnavailable.
 */
const createNew = async (
  deps: CommandDeps,
  { sender, command: requested, shown: given, longTexts, call, budget, reach }: Attempt,
  { freed, paymentId, operationId }: NextCreate,
): Promise<CommandResponse | undefined> => {
  const barred = freed && (await responseUnlessFenced(deps, freed, createOf(freed.state)));
  if (barred !== undefined) return barred;
  const described =
    'token' in given
      ? await describeToken(deps, given, requested, longTexts)
      : { shown: given, customer: undefined };
  if ('response' in described) return described.response;
  const { shown, customer } = described;
  const { group, ...open } = takeApart({ card: shown.card, details: requested.details });
  const { numberBrand } = shown;
  const place = { stream: streamOf(paymentId), eventType: 'PaymentCreated', field: 'personal' };
  const personal = sealBox(await deps.keys.take(budget.leftMs()), place, group);
  const command = { ...requested, ...open, personal, numberBrand, paymentId, operationId };
  const request = { paymentId, command, call: { ...call, customer }, sender, budget, reach };
  const reference = uniqueReferenceOf(command);
  const response = await deps.queues.run(paymentId, () =>
    reference ? createUnique(deps, request, command, reference) : operate(deps, request),
  );
  // The answer to the request itself reads no key.
  if (typeof response?.body !== 'object' || response.body.personal.key !== personal.key)
    return response;
  return { ...response, body: { ...response.body, personal: { clear: group } } };
};

/** Claims the reference first, and goes to the provider only while the claim stands (gaps §8). */
const createUnique = async (
  deps: CommandDeps,
  request: OperationRequest,
  command: CreateCommand,
  reference: string,
): Promise<CommandResponse | undefined> => {
  // A create that the rules refuse claims nothing.
  const decision = decide(undefined, command);
  if (decision.kind === 'refused') return rejection(decision.code, decision.details);
  const claimed = await claimReference(deps, request, command, reference);
  if ('response' in claimed) return claimed.response;
  return operate(deps, { ...request, mayGoOn: claimed.stands });
};

const shownCardOf = (card: CardInput): ShownCard => {
  const numberBrand = brandOf(card.number);
  return { card: maskCard(card, numberBrand), numberBrand };
};

/** Only for a new payment (gaps §14): a repeat is recognised without it, and has been searched. */
const describeToken = async (
  deps: Pick<CommandDeps, 'provider' | 'isLevel' | 'sharedStore'>,
  given: TokenInput,
  command: Attempt['command'],
  longTexts: readonly LongText[],
): Promise<{ shown: ShownCard; customer?: string | undefined } | { response: CommandResponse }> => {
  const described = await deps.provider.describeToken(given.token, command.merchantId);
  switch (described.outcome) {
    case 'DESCRIBED': {
      const holders = detailsOfHolders(longTexts, described.bin, described.last4);
      if (holders.length > 0) return { response: rejection('INVALID_REQUEST', holders) };
      const shown = { card: maskToken(described, given), numberBrand: described.brand };
      return { shown, customer: described.customer };
    }
    case 'NOT_FOUND':
      return {
        response: rejection('INVALID_REQUEST', ['paymentMethod.card.token is not known']),
      };
    case 'UNKNOWN':
      return {
        response: {
          ...tryLater(
            'PROVIDER_UNAVAILABLE',
            'the provider could not be asked for the card of the token; nothing was stored',
          ),
          ...(uniqueReferenceOf(command) === undefined && nothingUnderKey(deps, command)),
        },
      };
  }
};

/** Keeps the fields that tell cards apart without giving one away; of a token its keyed hash. */
const comparableCard = (
  { fingerprintOf }: Pick<Identities, 'fingerprintOf'>,
  brand: string | null,
  shown: ShownCard | TokenInput,
) => {
  if ('token' in shown) {
    const { holderName, token } = shown;
    return { brand, holderName, tokenHash: fingerprintOf({ token }) };
  }
  const { bin, last4, holderName, expiryMonth, expiryYear } = shown.card;
  return { bin, brand, expiryMonth, expiryYear, holderName, last4 };
};

/** Two creates with equal fields are the same request (gaps §8, §14). In canonical order, which needs no sort. */
export const comparableCreate = (
  identities: Pick<Identities, 'fingerprintOf'>,
  merchantId: string,
  { amount, currency, captureNow, details, card }: CreateRequest,
  shown: ShownCard | TokenInput,
) => ({
  amount,
  captureNow,
  card: comparableCard(identities, card.brand ?? null, shown),
  currency,
  details,
  merchantId,
});
