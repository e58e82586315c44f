/**
 * localstripe (`npm run engines`) keeps the books, behind the same double: PaymentIntents, cards,
 * charges and refunds and what may follow on what are its own, written by others. Where its dialect is
 * not Stripe's, this file translates.
 *
 * | localstripe | here |
 * |---|---|
 * | ignores Idempotency-Keys, and has no faults | both are the double's (idempotency.ts, server.ts) |
 * | a confirm takes no parameters | the PaymentMethod is set by an update before it |
 * | knows 3 test tokens and one number whose charge is declined | the others are read as one of them; each decline is `card_declined` |
 * | a confirm cannot fail by 3-D Secure | its own authentication is made to fail |
 * | a capture takes no metadata, a cancel no reason | written by an update after it; the reason as hidden metadata |
 * | a capture of a part makes a refund of the rest | not shown; `amount_received` is made from it |
 * | a capture after a cancel, a refund above the captured amount and one of a hold are accepted | rejected here, before it is asked |
 * | lists know no `created`, and there is no search | made of the PaymentIntents that were opened here |
 *
 * So several doubles can stand before one localstripe: each shows what was opened through it alone.
 */
import {
  CANCELABLE,
  errorReply,
  type Intent,
  invalid,
  metadataOf,
  missing,
  type Params,
  page,
  type Reply,
  type StripeActs,
  type StripeRefund,
  unexpectedState,
} from './books.ts';
import { type CardBehaviour, cardOfNumber, cardOfToken } from './cards.ts';

const TOKEN = {
  approved: 'pm_card_visa',
  declined: 'pm_card_chargeCustomerFail',
} as const;
/** Asks for authentication when it is charged. */
const NUMBER_3DS = '4000002760003184';
/** Of metadata that localstripe keeps for this file, and that nobody else sees. */
const HIDDEN = '_';
const ALL = { limit: '1000000' };
/** Test cards that localstripe's form of a card does not take: it wants 16 and 3 digits. */
const PLAIN = { 'card[number]': '4242424242424242', 'card[cvc]': '123' };

type Own = Omit<Intent, 'latest_charge'> & {
  client_secret: string;
  latest_charge: { id: string; status: string; captured: boolean } | null;
};
type OwnRefund = Omit<StripeRefund, 'payment_intent'> & { payment_intent: string | null };

type Form = Readonly<Record<string, string>>;

const formOf = (params: Params, without: RegExp): Form =>
  Object.fromEntries([...params].filter(([name]) => !without.test(name)));

const metadataForm = (metadata: Form): Form =>
  Object.fromEntries(Object.entries(metadata).map(([key, value]) => [`metadata[${key}]`, value]));

const isShown = ([key]: [string, string]): boolean => !key.startsWith(HIDDEN);

/** The books of localstripe at `url`. */
export const localstripeBooks = (url: string): StripeActs => {
  /** Oldest first. */
  const opened: string[] = [];
  let last: Promise<unknown> = Promise.resolve();

  /** One at a time: what is one request to Stripe is several here. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const next = last.then(work);
    last = next.catch(() => undefined);
    return next;
  };

  const ask = async (method: string, path: string, form: Form = {}): Promise<Reply> => {
    const text = new URLSearchParams(form).toString();
    const isGet = method === 'GET';
    const response = await fetch(`${url}/v1/${path}${isGet && text !== '' ? `?${text}` : ''}`, {
      method,
      headers: {
        authorization: 'Bearer sk_test_of_the_double',
        'content-type': 'application/x-www-form-urlencoded',
      },
      ...(!isGet && { body: text }),
    });
    const body: unknown = await response.json();
    return { status: response.status, body };
  };
  /** For what cannot fail but by a mistake of this file. */
  const done = async (method: string, path: string, form?: Form): Promise<unknown> => {
    const { status, body } = await ask(method, path, form);
    if (status !== 200) throw new Error(`localstripe: ${method} ${path}: ${status}`);
    return body;
  };

  const listed = async <T>(path: string, form: Form = {}): Promise<T[]> =>
    ((await done('GET', path, { ...form, ...ALL })) as { data: T[] }).data;

  /** What of a refund list is no refund: the rest of a partial capture. */
  const releasedOf = async (intent: Own): Promise<number> => {
    if (intent.latest_charge === null) return 0;
    const refunds = await listed<OwnRefund>('refunds', { charge: intent.latest_charge.id });
    return refunds
      .filter(({ payment_intent }) => payment_intent === null)
      .reduce((total, { amount }) => total + amount, 0);
  };

  const shownOf = async (intent: Own): Promise<Intent> => {
    const { latest_charge: charge, metadata } = intent;
    const isCaptured = charge?.status === 'succeeded' && charge.captured;
    return {
      object: intent.object,
      id: intent.id,
      amount: intent.amount,
      amount_received: isCaptured ? intent.amount - (await releasedOf(intent)) : 0,
      capture_method: intent.capture_method,
      currency: intent.currency,
      created: intent.created,
      status: intent.status,
      cancellation_reason: metadata[`${HIDDEN}reason`] ?? null,
      last_payment_error: intent.last_payment_error,
      latest_charge: charge && { object: 'charge', status: charge.status },
      metadata: Object.fromEntries(Object.entries(metadata).filter(isShown)),
    };
  };

  const find = async (id: string): Promise<Own | undefined> => {
    const { status, body } = await ask('GET', `payment_intents/${id}`);
    return status === 200 ? (body as Own) : undefined;
  };
  const intentOf = async (id: string): Promise<Own> =>
    (await done('GET', `payment_intents/${id}`)) as Own;
  const withIntent = (id: string, use: (intent: Own) => Promise<Reply>): Promise<Reply> =>
    inTurn(async () => {
      const intent = await find(id);
      return intent === undefined ? missing() : use(intent);
    });
  const show = async (id: string): Promise<Reply> => {
    return { status: 200, body: await shownOf(await intentOf(id)) };
  };
  const annotate = (id: string, metadata: Form): Promise<unknown> =>
    Object.keys(metadata).length === 0
      ? Promise.resolve()
      : done('POST', `payment_intents/${id}`, metadataForm(metadata));

  const ownIntents = (): Promise<Intent[]> =>
    Promise.all(opened.map(async (id) => shownOf(await intentOf(id))));
  /** Oldest first; those of a hold are none that Stripe would show. */
  const refundsOf = async (id: string): Promise<StripeRefund[]> => {
    if ((await intentOf(id)).latest_charge === null) return [];
    const all = await listed<StripeRefund>('refunds', { payment_intent: id });
    // It sorts by the second alone, and keeps the order in which those of one second were made.
    return all
      .filter(({ payment_intent }) => payment_intent === id)
      .sort((one, other) => one.created - other.created);
  };
  const ownRefunds = async (): Promise<StripeRefund[]> =>
    (await Promise.all(opened.map(refundsOf)))
      .flat()
      .sort((one, other) => one.created - other.created);

  const open = (params: Params): Promise<Reply> =>
    inTurn(async () => {
      const form = formOf(params, /^statement_descriptor_suffix$/);
      const made = await ask('POST', 'payment_intents', form);
      if (made.status !== 200) return made;
      const { id } = made.body as Own;
      opened.push(id);
      return show(id);
    });

  const behaviourOf = async (method: string): Promise<CardBehaviour | undefined> => {
    const known = cardOfToken(method);
    if (known !== undefined) return known;
    const { status, body } = await ask('GET', `payment_methods/${method}`);
    if (status !== 200) return undefined;
    const { metadata } = body as { metadata: Record<string, string> };
    return cardOfNumber(metadata[`${HIDDEN}last4`] ?? '');
  };

  /** localstripe's card for a behaviour: its number or token decides how a charge of it ends. */
  const chargedAs = async ({ declined, requiresAction }: CardBehaviour): Promise<string> => {
    if (!requiresAction) return declined === undefined ? TOKEN.approved : TOKEN.declined;
    const made = await done('POST', 'payment_methods', {
      type: 'card',
      'card[exp_month]': '12',
      'card[exp_year]': '2030',
      'card[cvc]': '123',
      'card[number]': NUMBER_3DS,
    });
    return (made as { id: string }).id;
  };

  const authenticationFails = async ({ id, client_secret }: Own): Promise<Reply> => {
    await done('POST', `payment_intents/${id}/_authenticate`, { client_secret, success: 'false' });
    const error = { type: 'card_error', code: 'authentication_required' };
    return errorReply(402, { ...error, payment_intent: { id } });
  };

  const confirm = (id: string, params: Params): Promise<Reply> =>
    withIntent(id, async (intent) => {
      if (!['requires_payment_method', 'requires_confirmation'].includes(intent.status))
        return unexpectedState(intent);
      const card = await behaviourOf(params.get('payment_method') ?? '');
      if (card === undefined) return missing();
      await done('POST', `payment_intents/${id}`, { payment_method: await chargedAs(card) });
      const confirmed = await ask('POST', `payment_intents/${id}/confirm`);
      if (confirmed.status !== 200) {
        const { error } = confirmed.body as { error: object };
        return errorReply(confirmed.status, { ...error, payment_intent: { id } });
      }
      const { status } = confirmed.body as Own;
      if (status === 'requires_action' && params.get('error_on_requires_action') === 'true')
        return authenticationFails(confirmed.body as Own);
      return show(id);
    });

  const capture = (id: string, params: Params): Promise<Reply> =>
    withIntent(id, async (intent) => {
      if (intent.status !== 'requires_capture') return unexpectedState(intent);
      const made = await ask(
        'POST',
        `payment_intents/${id}/capture`,
        formOf(params, /^metadata|^expand/),
      );
      if (made.status !== 200) return made;
      await annotate(id, metadataOf(params));
      return show(id);
    });

  const cancel = (id: string, params: Params): Promise<Reply> =>
    withIntent(id, async (intent) => {
      if (!CANCELABLE.includes(intent.status)) return unexpectedState(intent);
      const made = await ask('POST', `payment_intents/${id}/cancel`);
      if (made.status !== 200) return made;
      await annotate(id, { [`${HIDDEN}reason`]: params.get('cancellation_reason') ?? '' });
      return show(id);
    });

  const refund = (params: Params): Promise<Reply> =>
    withIntent(params.get('payment_intent') ?? '', async (intent) => {
      if (intent.status !== 'succeeded') return invalid('charge_not_refundable');
      const { amount_received: received } = await shownOf(intent);
      const before = await refundsOf(intent.id);
      const left = received - before.reduce((total, { amount }) => total + amount, 0);
      if (left === 0) return invalid('charge_already_refunded');
      if (Number(params.get('amount') ?? left) > left) return invalid('amount_too_large');
      return ask('POST', 'refunds', formOf(params, /^expand/));
    });

  const requestedRefunds = (params: Params): Promise<StripeRefund[]> => {
    const of = params.get('payment_intent');
    return of === undefined ? ownRefunds() : refundsOf(of);
  };

  const makeMethod = (params: Params): Promise<Reply> =>
    inTurn(() => {
      const number = params.get('card[number]') ?? '';
      return ask('POST', 'payment_methods', {
        ...formOf(params, /^card\[(number|cvc)\]$/),
        ...PLAIN,
        [`metadata[${HIDDEN}last4]`]: number.slice(-4),
      });
    });

  const readMethod = async (id: string): Promise<Reply> => {
    const known = cardOfToken(id);
    return ask('GET', `payment_methods/${known === undefined ? id : TOKEN.approved}`);
  };

  return {
    open,
    makeMethod,
    readMethod,
    confirm,
    capture,
    cancel,
    refund,
    update: (id, params) =>
      withIntent(id, async () => {
        await annotate(id, metadataOf(params));
        return show(id);
      }),
    read: (id) => withIntent(id, async () => show(id)),
    list: (what, params) =>
      inTurn(async () => {
        // It knows no disputes.
        if (what === 'disputes') return page([], params);
        return what === 'refunds'
          ? page(await requestedRefunds(params), params)
          : page(await ownIntents(), params);
      }),
    search: (params) =>
      inTurn(async () => {
        const id = /^metadata\['operationId'\]:'(.*)'$/.exec(params.get('query') ?? '')?.[1];
        const data = (await ownIntents()).filter(({ metadata }) => metadata.operationId === id);
        return { status: 200, body: { object: 'search_result', data, has_more: false } };
      }),
    all: () => inTurn(async () => ({ intents: await ownIntents(), refunds: await ownRefunds() })),
  };
};
