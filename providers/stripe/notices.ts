/** A notice is a reason to ask, never the truth; accepted once what Stripe says is recorded. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { createRateLimiter, peerOf, type Rate } from '../../shared/http/auth/hooks.ts';
import { RETRY_LATER, reject } from '../../shared/http/errors.ts';
import { named } from '../../shared/http/fields.ts';
import {
  type Budget,
  BudgetSpent,
  startBudget,
  withinBudget,
} from '../../shared/http/request-budget.ts';
import { okJson, type RoutesOf, type SignedRoute, sendJson } from '../../shared/http/route.ts';
import type {} from '../../shared/http/server/app.ts';
import {
  type Operation,
  type PaymentState,
  refundsOf,
  unresolvedOperations,
} from '../../shared/payment/state.ts';
import type { Config } from '../../shared/runtime/config.ts';
import { onError } from '../../shared/runtime/error-text.ts';
import { parseText, textOf } from '../../shared/runtime/json.ts';
import type { NoticeOrigin, Provider } from '../port.ts';
import { intentReference } from './read.ts';

const noticeBody = z.object({
  type: z.string().nullish(),
  account: z.string().nullish(),
  data: z.object({
    object: z.object({
      object: z.string().nullish(),
      id: z.string().nullish(),
      metadata: z.record(z.string(), z.unknown()).nullish(),
      payment_intent: z.unknown().optional(),
      status: z.unknown().optional(),
    }),
  }),
});

const ownPaymentId = z.string().regex(/^pay_[0-9A-Z]{26}$/);

const readNotice = (body: Buffer) => {
  const json = parseText(textOf(body));
  const read = noticeBody.safeParse(json.ok ? json.value : undefined).data;
  if (read === undefined) return undefined;
  const { object, id, metadata, payment_intent: intent, status } = read.data.object;
  const isMade = status === 'succeeded' || status === 'pending';
  return {
    type: read.type ?? '',
    account: read.account ?? undefined,
    /** From our metadata, which PaymentIntents, their charges and our refunds have. */
    paymentId: ownPaymentId.safeParse(metadata?.paymentId).data,
    /** The PaymentIntent, for what was made in the Dashboard, and disputes. */
    reference: intentReference(object === 'payment_intent' ? id : intent),
    ...(object === 'refund' && { refund: { id, operationId: metadata?.operationId, isMade } }),
  };
};
type Notice = NonNullable<ReturnType<typeof readNotice>>;

const ENDS: readonly string[] = ['payment_intent.succeeded', 'payment_intent.canceled'];

/** Stripe is asked only where it may show what the log does not have: reads have a rate limit too. */
const mayBeNew = ({ type, refund }: Notice, state: PaymentState): boolean => {
  if (type.startsWith('payment_intent.'))
    return state.status === 'AUTHORIZED' && ENDS.includes(type);
  if (refund === undefined || !refund.isMade) return true;
  return !refundsOf(state).some((one) =>
    'refundId' in one ? one.refundId === refund.id : one.operationId === refund.operationId,
  );
};

const TOLERANCE_S = 300;

const signatureOf = (secret: string, time: string, body: Buffer): Buffer =>
  createHmac('sha256', secret).update(`${time}.`).update(body).digest();

const isSignedByStripe = (
  body: Buffer,
  header: string,
  secrets: readonly string[],
  nowMs: number,
): boolean => {
  const parts = header.split(',').map((part) => part.split('=', 2));
  const valuesOf = (name: string): string[] =>
    parts.flatMap(([key, value]) => (key === name && value !== undefined ? [value] : []));
  const [time = '', ...others] = valuesOf('t');
  const ageS = Math.abs(nowMs / 1_000 - Number(time));
  if (others.length > 0 || !/^[1-9][0-9]{0,11}$/.test(time) || ageS > TOLERANCE_S) return false;
  const given = valuesOf('v1').filter((value) => /^[0-9a-f]{64}$/.test(value));
  const expected = secrets.map((secret) => signatureOf(secret, time, body));
  return given.some((value) =>
    expected.some((own) => timingSafeEqual(own, Buffer.from(value, 'hex'))),
  );
};

/** One Stripe account's secret, or two while one replaces the other. */
type Signer = { merchantId: string | undefined; secrets: readonly string[] };

type NoticedPayments = {
  provider: Pick<Provider, 'paymentOf'>;
  unresolved: {
    resolveInTurn(paymentId: string, budget: Budget): Promise<{ state: PaymentState } | undefined>;
  };
  inFlight: { isWaiting(operation: Operation): boolean };
  /** Asks the provider, and records what it says; false where it did not say. */
  askAbout(paymentId: string): Promise<boolean>;
  nowMs(): number;
};

export type StripeWebhookDeps = {
  stripeNotices: {
    payments: NoticedPayments;
    signers: readonly Signer[];
    unsigned: { limiter: ReturnType<typeof createRateLimiter>; rate: Rate };
  };
};

export const stripeNoticesOf = (
  { stripe, unauthenticatedRateLimit: rate }: Config,
  payments: NoticedPayments,
): StripeWebhookDeps['stripeNotices'] => ({
  payments,
  signers: [
    { merchantId: undefined, secrets: stripe?.webhookSecrets ?? [] },
    ...[...(stripe?.merchants ?? [])].map(([merchantId, { webhookSecrets: secrets }]) => ({
      merchantId,
      secrets,
    })),
  ],
  unsigned: { limiter: createRateLimiter(), rate },
});

/** For a merchant with its own account, that account's. */
export const givesNotices =
  ({ provider, stripe }: Config) =>
  (merchantId: string): boolean => {
    const { webhookSecrets = [] } = stripe?.merchants.get(merchantId) ?? stripe ?? {};
    return provider.kind === 'simulator' || webhookSecrets.length > 0;
  };

/** Stripe gives up a delivery after some ten seconds. */
const BUDGET_MS = 8_000;

/** False where Stripe did not say, and has to deliver the notice again. */
const askNow = async (
  payments: NoticedPayments,
  notice: Notice,
  origin: NoticeOrigin,
  { request }: FastifyReply,
  budget: Budget,
): Promise<boolean> => {
  let { paymentId } = notice;
  if (paymentId === undefined && notice.reference !== undefined) {
    const found = await payments.provider.paymentOf(notice.reference, origin);
    if (found.outcome === 'UNKNOWN') return false;
    if (found.outcome === 'FOUND') paymentId = found.paymentId;
  }
  if (paymentId === undefined) return true;
  request.paymentId = paymentId;
  const payment = await payments.unresolved.resolveInTurn(paymentId, budget);
  if (payment === undefined) return true;
  const left = unresolvedOperations(payment.state);
  // While the shopper is waited for nothing is to be known.
  if (left.length > 0) return left.every(payments.inFlight.isWaiting);
  if (!mayBeNew(notice, payment.state)) return true;
  return payments.askAbout(paymentId);
};

const rejectUnsigned = (
  reply: FastifyReply,
  { limiter, rate }: StripeWebhookDeps['stripeNotices']['unsigned'],
): FastifyReply => {
  const seconds = limiter.take(peerOf(reply.request.raw.socket), rate);
  if (seconds === undefined)
    return reject(reply, 'UNAUTHORIZED', ['the signature is missing or not valid']);
  const retry = { 'retry-after': String(seconds) };
  return reject(reply, 'RATE_LIMITED', ['too many requests; try again later'], retry);
};

const signerOf = (
  { request }: FastifyReply,
  body: Buffer,
  signers: readonly Signer[],
  nowMs: number,
): Signer | undefined => {
  const header = request.headers['stripe-signature'];
  const signature = Array.isArray(header) ? header.join() : (header ?? '');
  return signers.find(({ secrets }) => isSignedByStripe(body, signature, secrets, nowMs));
};

const NoticeReceived = named('NoticeReceived', { received: z.literal(true) });

const stripeWebhook: SignedRoute<StripeWebhookDeps> = {
  request: { body: { schema: noticeBody, required: true } },
  responses: okJson(NoticeReceived),
  rejectAtOnce: ({ stripeNotices: { signers, unsigned } }, reply) =>
    reply.request.headers['stripe-signature'] !== undefined &&
    signers.some(({ secrets }) => secrets.length > 0)
      ? undefined
      : rejectUnsigned(reply, unsigned),
  handle: async ({ stripeNotices: { payments, signers, unsigned } }, _input, reply) => {
    const { body: raw } = reply.request;
    const body = Buffer.isBuffer(raw) ? raw : Buffer.alloc(0);
    const signer = signerOf(reply, body, signers, payments.nowMs());
    if (signer === undefined) return rejectUnsigned(reply, unsigned);
    const notice = readNotice(body);
    if (notice === undefined)
      return reject(reply, 'INVALID_REQUEST', ['the body is not a Stripe event']);
    const origin = { merchantId: signer.merchantId, account: notice.account };
    const budget = startBudget(BUDGET_MS);
    const asking = askNow(payments, notice, origin, reply, budget);
    if (await withinBudget(asking, budget).catch(onError(BudgetSpent, () => false)))
      return sendJson(reply, { received: true });
    const details = ['the outcome is not known yet; deliver the notice again'];
    return reject(reply, 'SERVICE_UNAVAILABLE', details, RETRY_LATER);
  },
};

/** The signature over the raw body stands in the place of a token. */
export const STRIPE_WEBHOOK_ROUTES = { stripeWebhook } satisfies Partial<
  RoutesOf<'command-api', StripeWebhookDeps>
>;
