/**
 * POST /api/v1/payments: finds out which payment the request is about (a repeat under its key, an
 * equal create that is unresolved, or a new payment), and gives a new one to operate.ts (gaps §6 to
 * §8). A payment's create has one operation id, that of its intent.
 */

import type { CallDetails } from '../providers/port.ts';
import {
  type CreateIds,
  createIdsUnder,
  type Identities,
  recognisedBy,
} from '../shared/http/idempotency.ts';
import type { Sender } from '../shared/http/request.ts';
import { type Budget, BudgetSpent } from '../shared/http/request-budget.ts';
import {
  brandOf,
  type CardInput,
  CardSecret,
  maskCard,
  maskToken,
  type TokenInput,
} from '../shared/payment/card.ts';
import type { CreateCommand } from '../shared/payment/commands.ts';
import { decide } from '../shared/payment/decide.ts';
import { createOf, isFree, isOfSameRequest, type Recognised } from '../shared/payment/state.ts';
import { newOperationId, newPaymentId } from '../shared/runtime/ids.ts';
import type { CommandDeps } from './deps.ts';
import { waitForInFlight } from './in-flight.ts';
import { addressAgain, claimReference, stillClaims } from './merchant-reference.ts';
import { metEarlierFence, nothingUnderKey, type OperationRequest, operate } from './operate.ts';
import { type LoadedPayment, notInLog } from './payment-log.ts';
import { responseUnlessFenced } from './recovery/contradiction.ts';
import { detailsOfHolders, type LongText } from './request/card-texts.ts';
import type { CreateRequest } from './request/payment-request.ts';
import { isLocal, RETURN_URL_NOT_PUBLIC } from './request/schemas.ts';
import {
  type CommandResponse,
  type EarlierOperation,
  keyReused,
  rejection,
  replayed,
  responseTo,
  tryLater,
} from './responses.ts';

/** Its page is on this machine, and may lead back to it (gaps §21). */
const isSimulated = ([name = '']: readonly string[]): boolean =>
  /^(simulator|http:(localhost|127\.0\.0\.1)(:.*)?)$/.test(name);

type ShownCard = Pick<CreateCommand, 'card' | 'numberBrand'>;

/** The card secret lives in `call`, no longer than the request's command. */
type Attempt = {
  sender: Sender;
  command: Omit<CreateCommand, 'operationId' | 'paymentId' | keyof ShownCard>;
  shown: ShownCard | TokenInput;
  longTexts: readonly LongText[];
  call: CallDetails;
  budget: Budget;
};

export const createPayment = (
  deps: CommandDeps,
  sender: Sender,
  request: CreateRequest,
  key: string | undefined,
  budget: Budget,
): Promise<CommandResponse> => {
  const { card, authentication, longTexts = [], ...fields } = request;
  const { captureNow, details } = fields;
  const { identities, providers } = deps;
  if (authentication && isLocal(authentication.returnUrl) && !isSimulated(providers))
    return Promise.resolve(rejection('INVALID_REQUEST', [RETURN_URL_NOT_PUBLIC]));
  const { merchantId } = sender;
  const shown = 'token' in card ? card : shownCardOf(card);
  const recognised = recognisedBy(identities, (by) => ({
    fingerprint: by.fingerprintOf(comparableCreate(by, merchantId, request, shown)),
  }));
  const rules = deps.rulesOf(merchantId);
  const command = {
    kind: 'create',
    merchantId,
    ...fields,
    ...recognised,
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
  const attempt: Attempt = { sender, command, shown, longTexts, call, budget };
  return key === undefined ? createOrJoin(deps, attempt) : createUnderKey(deps, attempt, key);
};

/** Joins equal creates that are unresolved, one after the other, before it makes a new payment. */
const createOrJoin = async (deps: CommandDeps, attempt: Attempt): Promise<CommandResponse> => {
  const { command, budget } = attempt;
  const { merchantReference } = command.details;
  while (budget.leftMs() > 0) {
    const joined = merchantReference === undefined ? undefined : equalCreate(deps, command);
    const response =
      joined === undefined
        ? await createNew(deps, attempt, newIds())
        : await joinUnresolved(deps, joined, budget);
    if (response !== undefined) return response;
  }
  throw new BudgetSpent();
};

const newIds = (): CreateIds => ({ paymentId: newPaymentId(), operationId: newOperationId() });

const equalCreate = (
  { unresolved }: CommandDeps,
  { identity, previousIdentity }: Recognised,
): string | undefined =>
  unresolved.equalCreate(identity.fingerprint) ??
  (previousIdentity && unresolved.equalCreate(previousIdentity.fingerprint));

/** Undefined where the create was proven never carried out before this request had its turn. */
const joinUnresolved = (
  deps: CommandDeps,
  paymentId: string,
  budget: Budget,
): Promise<CommandResponse | undefined> => {
  budget.begunOn = paymentId;
  return deps.queues.run(paymentId, async () => {
    const before = await waitForInFlight(deps, paymentId, 'store', budget);
    // A create may have its outcome already: the unresolved index drops it then.
    const payment = await deps.unresolved.resolve(paymentId);
    if (before === undefined || payment === undefined) throw notInLog(paymentId);
    if (!isFree(createOf(before.state))) return responseTo(payment, createOf(payment.state));
    budget.begunOn = undefined;
    return undefined;
  });
};

/** `free`: the payment whose create was proven never carried out, so that the next id is free. */
type Tried = { response: CommandResponse } | { free: LoadedPayment };

const createUnderKey = (
  deps: CommandDeps,
  attempt: Attempt,
  key: string,
): Promise<CommandResponse> => {
  const { sender, command, budget } = attempt;
  const { identities, queues } = deps;
  const { previous } = identities;
  const { merchantId } = sender;
  const keyHash = identities.keyHashOf(merchantId, 'create', '', key);
  const keyed = { ...attempt, command: { ...command, identity: { ...command.identity, keyHash } } };
  return queues.run(`create ${identities.paymentIdOf(merchantId, key, 1)}`, async () => {
    let before: LoadedPayment | undefined;
    // The older secret's ids are for payments from before the rotation; it makes no new ones.
    for (const by of previous === undefined ? [identities] : [previous, identities]) {
      let n = 1;
      while (budget.leftMs() > 0) {
        const ids = createIdsUnder(by, merchantId, key, n);
        const tried: Tried | undefined = await repeatOf(deps, keyed, ids.paymentId);
        if (tried !== undefined) {
          if ('response' in tried) return tried.response;
          before = tried.free;
          n += 1;
        } else if (by === previous) break;
        else {
          const barred =
            before && (await responseUnlessFenced(deps, before, createOf(before.state)));
          const response = barred ?? (await createNew(deps, keyed, ids));
          // Else another process was faster, under the same key or with the same reference.
          if (response !== undefined && !metEarlierFence(deps, response, n)) return response;
        }
      }
    }
    throw new BudgetSpent();
  });
};

const repeatOf = async (
  deps: CommandDeps,
  { command, budget }: Attempt,
  paymentId: string,
): Promise<Tried | undefined> => {
  const found = await deps.paymentLog.load(paymentId, 'store');
  if (found === undefined) return undefined;
  const first = createOf(found.state);
  if (isFree(first)) return { free: found };
  if (!isOfSameRequest(first, command)) return { response: keyReused() };
  if (first.ended !== undefined) return { response: replayed(responseTo(found, first)) };
  const payment = deps.inFlight.wasJustLookedUp(first)
    ? found
    : await deps.unresolved.resolveInTurn(paymentId, budget);
  if (payment === undefined) throw notInLog(paymentId);
  const create = createOf(payment.state);
  if (isFree(create)) return { free: payment };
  const waiting = addressAgain(deps, payment);
  if (waiting !== undefined) return { response: replayed(waiting) };
  const response = responseTo(payment, create);
  return { response: create.ended === undefined ? response : replayed(response) };
};

/** The reference that stands for one payment alone (gaps §8), as a key does. */
export const uniqueReferenceOf = ({
  rules,
  details,
}: Pick<CreateCommand, 'rules' | 'details'>): string | undefined =>
  rules.uniqueReferences ? details.merchantReference : undefined;

/** Undefined where another request has the id or the reference: look at the payments again. */
const createNew = async (
  deps: CommandDeps,
  { sender, command: requested, shown: given, longTexts, call, budget }: Attempt,
  { paymentId, operationId }: CreateIds,
): Promise<CommandResponse | undefined> => {
  const described =
    'token' in given
      ? await describeToken(deps, given, requested, longTexts)
      : { shown: given, customer: undefined };
  if ('response' in described) return described.response;
  const { shown, customer } = described;
  const command = { ...requested, ...shown, paymentId, operationId };
  const request = { paymentId, command, call: { ...call, customer }, sender, budget };
  const reference = uniqueReferenceOf(command);
  return deps.queues.run(paymentId, () =>
    reference ? createUnique(deps, request, command, reference) : operate(deps, request),
  );
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
  const { sender, budget } = request;
  const claimed = await claimReference(deps, sender, command, reference, budget);
  if ('response' in claimed) return claimed.response;
  const mayGoOn = () => stillClaims(deps, command, reference, claimed.claimId);
  return operate(deps, { ...request, mayGoOn });
};

/** The create under the request's key that has no outcome yet, as far as memory tells (gaps §8). */
export const earlierCreate = (
  { identities, inFlight, paymentLog }: CommandDeps,
  { merchantId }: Sender,
  key: string | undefined,
): EarlierOperation | undefined => {
  if (key === undefined) return undefined;
  for (const by of [identities, identities.previous]) {
    for (let n = 1; by !== undefined; n++) {
      const { paymentId, operationId } = createIdsUnder(by, merchantId, key, n);
      // A live operation counts even before its intent is stored.
      if (inFlight.isLive(operationId)) return { paymentId, mayRun: true };
      const payment = paymentLog.peek(paymentId);
      if (payment === undefined) break;
      const create = createOf(payment.state);
      if (isFree(create)) continue;
      if (create.ended !== undefined) break;
      return { paymentId, mayRun: inFlight.mayRun(payment, create) };
    }
  }
  return undefined;
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

/** Two creates with equal fields are the same request (gaps §8, §14). */
export const comparableCreate = (
  identities: Pick<Identities, 'fingerprintOf'>,
  merchantId: string,
  { amount, currency, captureNow, details, card }: CreateRequest,
  shown: ShownCard | TokenInput,
) => ({
  merchantId,
  amount,
  currency,
  captureNow,
  details,
  card: comparableCard(identities, card.brand ?? null, shown),
});
