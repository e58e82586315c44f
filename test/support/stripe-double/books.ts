/**
 * What Stripe keeps, as far as the driver can see it: PaymentIntents, PaymentMethods, refunds, disputes. Every
 * change is synchronous and whole, as each is in Stripe's own store.
 */
import { randomBytes } from 'node:crypto';
import {
  type CardBehaviour,
  cardOfNumber,
  cardOfToken,
  hasCheckDigit,
  type StripeDecline,
} from './cards.ts';

export type Reply = { status: number; body: unknown };
/** The form of a request, its brackets left as they are: `metadata[operationId]`. */
export type Params = ReadonlyMap<string, string>;

export type Intent = {
  object: 'payment_intent';
  id: string;
  amount: number;
  amount_received: number;
  capture_method: string;
  currency: string;
  created: number;
  status: string;
  cancellation_reason: string | null;
  last_payment_error: StripeDecline | null;
  next_action: NextAction | null;
  customer: string | null;
  latest_charge: {
    object: 'charge';
    status: string;
    disputed?: boolean;
    payment_method_details?: { card: { capture_before?: number } };
  } | null;
  metadata: Record<string, string>;
  card?: CardBehaviour;
};
type Made = {
  id: string;
  amount: number;
  currency: string;
  created: number;
  status: string;
  payment_intent: string;
};
export type StripeRefund = Made & {
  object: 'refund';
  failure_reason?: string;
  metadata: Record<string, string>;
};
type StripeDispute = Made & { object: 'dispute'; reason: string };

type NextAction = {
  type: 'redirect_to_url' | 'use_stripe_sdk';
  redirect_to_url?: { url: string; return_url: string };
};
type Method = {
  card: CardBehaviour;
  name: string | null;
  customer: string | null;
  /** It was confirmed once: without a customer it can never be again. */
  isUsed?: true;
};

/** What Stripe lists. */
export type Listed = 'payment_intents' | 'refunds' | 'disputes' | 'events';

export const errorReply = (status: number, error: Record<string, unknown>): Reply => ({
  status,
  body: { error },
});
const invalid = (code: string | undefined, message = 'invalid request'): Reply =>
  errorReply(400, { type: 'invalid_request_error', ...(code && { code }), message });
const missing = (): Reply =>
  errorReply(404, { type: 'invalid_request_error', code: 'resource_missing', message: 'missing' });

/** An event keeps the form of the version that its account is set to, whatever a request asks for. */
const ACCOUNT_VERSION = '2020-08-27';
const EVENTS_KEPT_SECONDS = 30 * 86_400;

/** Stripe's seven days of an online card payment. */
const CAPTURE_SECONDS = 7 * 86_400;

const newId = (prefix: string): string => `${prefix}_${randomBytes(12).toString('hex')}`;

const metadataOf = (params: Params): Record<string, string> =>
  Object.fromEntries(
    [...params].flatMap(([name, value]) => {
      const key = /^metadata\[(.+)\]$/.exec(name)?.[1];
      return key === undefined ? [] : [[key, value]];
    }),
  );

const CANCELABLE = [
  'requires_payment_method',
  'requires_capture',
  'requires_confirmation',
  'requires_action',
];
const CONFIRMABLE = ['requires_payment_method', 'requires_confirmation', 'requires_action'];

/** The address holds the PaymentIntent's secret, by which it can be confirmed in a browser. */
const nextActionOf = ({ id }: Intent, params: Params): NextAction => {
  const return_url = params.get('return_url');
  if (return_url === undefined || params.get('use_stripe_sdk') !== 'false')
    return { type: 'use_stripe_sdk' };
  const url = `https://hooks.stripe.com/3d_secure_2/hosted?payment_intent_client_secret=${id}_secret_x`;
  return { type: 'redirect_to_url', redirect_to_url: { url, return_url } };
};

/** The operation does not fit the status. */
const unexpectedState = ({ id }: { id: string }): Reply =>
  errorReply(400, {
    type: 'invalid_request_error',
    code: 'payment_intent_unexpected_state',
    message: 'unexpected state',
    payment_intent: { id },
  });

const isOpenDispute = (status: string): boolean => /^(needs_response|under_review)$/.test(status);
/** Its money is gone, also while its loss is appealed. */
const isLostDispute = (status: string): boolean => /^(lost|appeal_)/.test(status);

const formOf = (fields: Record<string, string | number | undefined>): Params =>
  new Map(
    Object.entries(fields).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)]],
    ),
  );

const expandsCharge = (params: Params): boolean =>
  params.get('expand[0]')?.endsWith('latest_charge') === true;

/** What the driver ignores: with it a PaymentIntent has its size, about 7 kB. */
const REST = { rest_of_the_object: 'x'.repeat(3_000) };

const chargeOf = (intent: Intent, amount_refunded: number) => {
  const { id, amount, amount_received, created, currency, latest_charge, metadata } = intent;
  if (latest_charge === null) return null;
  const card = latest_charge.payment_method_details?.card ?? {};
  return {
    ...REST,
    id: id.replace('pi_', 'ch_'),
    amount,
    amount_captured: amount_received,
    amount_refunded,
    disputed: false,
    created,
    currency,
    metadata,
    payment_intent: id,
    ...latest_charge,
    payment_method_details: { type: 'card', card },
  };
};

/** With its charge where that was expanded, else with the id of it. */
const wholeIntent = (
  { card: _, ...intent }: Intent,
  amountRefunded: number,
  isExpanded: boolean,
) => {
  const charge = chargeOf({ ...intent }, amountRefunded);
  return {
    ...REST,
    client_secret: `${intent.id}_secret_of_the_double`,
    ...intent,
    latest_charge: isExpanded ? charge : (charge?.id ?? null),
  };
};

/** One page of a list, newest first, by `created`, `starting_after` and `limit`. */
const page = <T extends { id: string; created: number }>(
  all: readonly T[],
  params: Params,
  show: (one: T) => object,
): Reply => {
  const from = Number(params.get('created[gte]') ?? 0);
  const to = Number(params.get('created[lt]') ?? Number.POSITIVE_INFINITY);
  const newest = all.filter(({ created }) => created >= from && created < to).reverse();
  const after = params.get('starting_after');
  const start = after === undefined ? 0 : newest.findIndex(({ id }) => id === after) + 1;
  const limit = Number(params.get('limit') ?? 10);
  const data = newest.slice(start, start + limit).map(show);
  return {
    status: 200,
    body: { object: 'list', data, has_more: newest.length > start + limit },
  };
};

/** Empty books; `nowMs` is the wall clock of Stripe. */
export const createBooks = (nowMs: () => number = Date.now) => {
  const intents = new Map<string, Intent>();
  const methods = new Map<string, Method>();
  const refunds: StripeRefund[] = [];
  const disputes: StripeDispute[] = [];
  /** Each with the PaymentIntent as it was then, its charge by its id alone. */
  const events: ReturnType<typeof eventOf>[] = [];
  const seconds = () => Math.floor(nowMs() / 1_000);

  const shownAs = (intent: Intent, params: Params) =>
    wholeIntent(intent, refundedOf(intent.id), expandsCharge(params));
  const shown = (intent: Intent, params: Params = new Map()): Reply => ({
    status: 200,
    body: shownAs(intent, params),
  });

  const eventOf = (change: string, object: object) => ({
    object: 'event',
    id: newId('evt'),
    api_version: ACCOUNT_VERSION,
    created: seconds(),
    data: { object: structuredClone(object) },
    type: `payment_intent.${change}`,
  });
  const tell = (change: string, intent: Intent): void =>
    void events.push(eventOf(change, shownAs(intent, new Map())));

  const withIntent = (id: string, use: (intent: Intent) => Reply): Reply => {
    const intent = intents.get(id);
    return intent === undefined ? missing() : use(intent);
  };

  const open = (params: Params): Reply => {
    const amount = Number(params.get('amount'));
    if (!Number.isSafeInteger(amount) || amount < 50) return invalid('amount_too_small');
    const intent: Intent = {
      object: 'payment_intent',
      id: newId('pi'),
      amount,
      amount_received: 0,
      capture_method: params.get('capture_method') ?? 'automatic_async',
      currency: params.get('currency') ?? '',
      created: seconds(),
      status: 'requires_payment_method',
      cancellation_reason: null,
      last_payment_error: null,
      next_action: null,
      customer: params.get('customer') ?? null,
      latest_charge: null,
      metadata: metadataOf(params),
    };
    intents.set(intent.id, intent);
    tell('created', intent);
    return shown(intent);
  };

  const makeMethod = (params: Params): Reply => {
    const isTestToken = params.get('card[token]') === 'tok_visa';
    const number = isTestToken ? '4242424242424242' : (params.get('card[number]') ?? '');
    if (!hasCheckDigit(number)) {
      return errorReply(402, { type: 'card_error', code: 'incorrect_number', message: 'wrong' });
    }
    const id = newId('pm');
    const name = params.get('billing_details[name]') ?? null;
    methods.set(id, { card: cardOfNumber(number), name, customer: null });
    return { status: 200, body: { object: 'payment_method', id } };
  };

  /** As Stripe.js makes one of a test card; `customer`: it was saved to this one. */
  const makeToken = (
    kind: 'pm' | 'ctoken',
    testToken: string,
    customer: string | null = null,
  ): string => {
    const card = cardOfToken(testToken);
    if (card === undefined) throw new Error(`${testToken} is no test token`);
    const id = newId(kind);
    methods.set(id, { card, name: null, customer });
    return id;
  };

  /** What stands in test mode for a ConfirmationToken that Stripe.js makes. */
  const makeTestToken = (params: Params): Reply => {
    const testToken = params.get('payment_method') ?? '';
    if (cardOfToken(testToken) === undefined) return missing();
    return {
      status: 200,
      body: { object: 'confirmation_token', id: makeToken('ctoken', testToken) },
    };
  };

  const methodOf = (id: string): Method | undefined => {
    const card = cardOfToken(id);
    return card === undefined ? methods.get(id) : { card, name: null, customer: null };
  };

  const readMethod = (id: string): Reply => {
    const method = methodOf(id);
    if (method === undefined) return missing();
    const { name, customer } = method;
    const { brand, last4 } = method.card;
    const shownMethod = {
      type: 'card',
      billing_details: { name },
      customer,
      card: { brand, last4, exp_month: 12, exp_year: 2030, wallet: { type: 'link' } },
    };
    const body = id.startsWith('ctoken_')
      ? { object: 'confirmation_token', id, payment_method_preview: shownMethod }
      : { object: 'payment_method', id, ...shownMethod };
    return { status: 200, body };
  };

  const fail = (intent: Intent, error: StripeDecline): Reply => {
    intent.last_payment_error = error;
    intent.latest_charge = { object: 'charge', status: 'failed' };
    return errorReply(402, {
      type: 'card_error',
      ...error,
      message: `card ending in ${intent.card?.last4}`,
      payment_intent: shownAs(intent, new Map()),
    });
  };

  const confirm = (id: string, params: Params): Reply =>
    withIntent(id, (intent) => {
      if (!CONFIRMABLE.includes(intent.status)) return unexpectedState(intent);
      const [token = '', given = ''] = ['confirmation_token', 'payment_method'].map((name) =>
        params.get(name),
      );
      const method = methodOf(token || given);
      if (method === undefined || given.startsWith('ctoken_')) return missing();
      if (method.customer !== null && method.customer !== intent.customer)
        return invalid(undefined, 'belongs to a customer');
      // A saved card may pay again, its ConfirmationToken may not.
      if (method.isUsed && (method.customer === null || token !== ''))
        return invalid(undefined, 'was used before without a customer');
      method.isUsed = true;
      const { card } = method;
      intent.card = card;
      if (card.declined !== undefined) return fail(intent, card.declined);
      const isOneWay = ['error_on_requires_action', 'off_session'].some(
        (name) => params.get(name) === 'true',
      );
      if (card.requiresAction && isOneWay) return fail(intent, { code: 'authentication_required' });
      intent.last_payment_error = null;
      if (card.requiresAction) {
        intent.status = 'requires_action';
        intent.next_action = nextActionOf(intent, params);
        return shown(intent, params);
      }
      return charge(intent, params);
    });

  const charge = (intent: Intent, params: Params = new Map()): Reply => {
    intent.latest_charge = { object: 'charge', status: 'succeeded', disputed: false };
    const isManual = intent.capture_method === 'manual';
    if (isManual)
      intent.latest_charge.payment_method_details = {
        card: { capture_before: intent.created + CAPTURE_SECONDS },
      };
    intent.status = isManual ? 'requires_capture' : 'succeeded';
    intent.amount_received = isManual ? 0 : intent.amount;
    tell(isManual ? 'amount_capturable_updated' : 'succeeded', intent);
    if (intent.card?.disputed && !isManual) dispute(intent.id);
    return shown(intent, params);
  };

  /** The shopper at the address of `next_action`: is who the card says, or is not. */
  const authenticate = (id: string, isShopper: boolean): Reply =>
    withIntent(id, (intent) => {
      if (intent.status !== 'requires_action') return unexpectedState(intent);
      intent.next_action = null;
      if (isShopper) return charge(intent);
      intent.status = 'requires_payment_method';
      return fail(intent, { code: 'payment_intent_authentication_failure' });
    });

  const capture = (id: string, params: Params): Reply =>
    withIntent(id, (intent) => {
      if (intent.status !== 'requires_capture') return unexpectedState(intent);
      const amount = Number(params.get('amount_to_capture') ?? intent.amount);
      if (amount > intent.amount) return invalid('amount_too_large');
      intent.status = 'succeeded';
      intent.amount_received = amount;
      Object.assign(intent.metadata, metadataOf(params));
      tell('succeeded', intent);
      return shown(intent, params);
    });

  const cancel = (id: string, params: Params): Reply =>
    withIntent(id, (intent) => {
      if (!CANCELABLE.includes(intent.status)) return unexpectedState(intent);
      intent.status = 'canceled';
      intent.next_action = null;
      intent.cancellation_reason = params.get('cancellation_reason') ?? null;
      tell('canceled', intent);
      return shown(intent, params);
    });

  const update = (id: string, params: Params): Reply =>
    withIntent(id, (intent) => {
      Object.assign(intent.metadata, metadataOf(params));
      return shown(intent, params);
    });

  const totalOf = (made: readonly Made[], id: string, isCounted: (status: string) => boolean) =>
    made
      .filter(({ payment_intent, status }) => payment_intent === id && isCounted(status))
      .reduce((total, { amount }) => total + amount, 0);
  const refundedOf = (id: string): number => totalOf(refunds, id, (status) => status !== 'failed');

  const refund = (params: Params): Reply =>
    withIntent(params.get('payment_intent') ?? '', (intent) => {
      if (totalOf(disputes, intent.id, isOpenDispute) > 0) return invalid('charge_disputed');
      const lost = totalOf(disputes, intent.id, isLostDispute);
      const left = intent.amount_received - refundedOf(intent.id) - lost;
      if (intent.status !== 'succeeded') return invalid('charge_not_refundable');
      if (left === 0) return invalid('charge_already_refunded');
      const amount = Number(params.get('amount') ?? left);
      if (amount > left) return invalid('amount_too_large');
      const made: StripeRefund = {
        object: 'refund',
        id: newId('re'),
        amount,
        currency: intent.currency,
        created: seconds(),
        status: intent.card?.refundFails ? 'pending' : 'succeeded',
        payment_intent: intent.id,
        metadata: metadataOf(params),
      };
      refunds.push(made);
      return { status: 200, body: { ...made } };
    });

  /** The cardholder disputes what was taken. */
  const dispute = (id: string, parts: Partial<StripeDispute> = {}): StripeDispute => {
    const intent = intents.get(id);
    if (intent?.latest_charge == null) throw new Error(`${id} has no charge to be disputed`);
    intent.latest_charge.disputed = true;
    const made: StripeDispute = {
      object: 'dispute',
      id: newId('du'),
      amount: intent.amount_received,
      currency: intent.currency,
      created: seconds(),
      reason: 'fraudulent',
      status: 'needs_response',
      payment_intent: id,
      ...parts,
    };
    disputes.push(made);
    return made;
  };

  const list = (what: Listed, params: Params): Reply => {
    const of = params.get('payment_intent');
    const isOf = ({ payment_intent }: { payment_intent: string }) =>
      of === undefined || payment_intent === of;
    const showMade = (made: StripeRefund | StripeDispute) => {
      const intent = intents.get(made.payment_intent);
      const isExpanded = params.get('expand[0]') === 'data.payment_intent';
      return isExpanded && intent ? { ...made, payment_intent: shownAs(intent, params) } : made;
    };
    if (what === 'events') {
      const types = [...params].flatMap(([name, type]) => (/^types\[/.test(name) ? [type] : []));
      const kept = events.filter(
        ({ type, created }) =>
          created > seconds() - EVENTS_KEPT_SECONDS && (types.length === 0 || types.includes(type)),
      );
      return page(kept, params, (event) => event);
    }
    if (what === 'payment_intents')
      return page([...intents.values()], params, (intent) => shownAs(intent, params));
    const made: (StripeRefund | StripeDispute)[] = what === 'refunds' ? refunds : disputes;
    return page(made.filter(isOf), params, showMade);
  };

  const search = (params: Params): Reply => {
    const query = params.get('query') ?? '';
    const id = /^metadata\['operationId'\]:'(.*)'$/.exec(query)?.[1];
    const isOfAll = query === "-metadata['operationId']:null";
    const hits = [...intents.values()].filter(
      ({ metadata: { operationId: own } }) => own !== undefined && (isOfAll || own === id),
    );
    return page(hits, params, (intent) => shownAs(intent, params));
  };

  /** What is done by hand in the Dashboard: none of it has metadata of ours. */
  const dashboard = {
    capture: (id: string, amount?: number) => capture(id, formOf({ amount_to_capture: amount })),
    cancel: (id: string, reason?: string) => cancel(id, formOf({ cancellation_reason: reason })),
    /** Gives the refund's id. */
    refund: (id: string, amount?: number): string => {
      const { body } = refund(formOf({ payment_intent: id, amount }));
      return (body as { id: string }).id;
    },
    /** A payment that this service did not open; gives its PaymentIntent. */
    open: (amount = 5_000): Intent => {
      const { body } = open(formOf({ amount, currency: 'usd' }));
      const intent = intents.get((body as { id: string }).id);
      if (intent === undefined) throw new Error('it was not opened');
      return intent;
    },
  };

  return {
    intents,
    refunds,
    disputes,
    refundedOf,
    dispute,
    dashboard,
    open,
    makeMethod,
    makeToken,
    makeTestToken,
    readMethod,
    confirm,
    authenticate,
    capture,
    cancel,
    update,
    refund,
    list,
    search,
    read: (id: string, params: Params): Reply => withIntent(id, (intent) => shown(intent, params)),
    /** All PaymentIntents and refunds, oldest first, for a test to compare with. */
    all: () => ({ intents: [...intents.values()], refunds }),
  };
};

/** See `createBooks`. */
export type Books = ReturnType<typeof createBooks>;
