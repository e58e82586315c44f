/**
 * `POST /webhooks/stripe`: what Stripe tells by itself. A notice is a reason to ask now and never the
 * truth: notices repeat, come late and in any order. It is accepted once the outcome that Stripe then
 * gives is recorded; before, Stripe delivers it again, for days.
 */
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { createRateLimiter, type Rate } from '../../shared/http/auth/rate-limit.ts';
import { RETRY_LATER, reject } from '../../shared/http/errors.ts';
import { unresolvedOperations } from '../../shared/payment/payment-state.ts';
import type { CommandDeps } from '../deps.ts';
import { resolvedInTurn } from '../recovery/ask.ts';
import { askAbout } from '../recovery/later-results.ts';
import { BudgetSpent, startBudget, withinBudget } from '../request-budget.ts';
import { isSignedByStripe } from './stripe-signature.ts';

export type StripeWebhookOptions = {
  /** One, or two while one replaces the other. */
  secrets: readonly string[];
  /** Drawn on, per address, by notices that are not signed. */
  unsignedRate: Rate;
  commands: CommandDeps;
};

export const STRIPE_WEBHOOK_PATH = '/webhooks/stripe';
/** Stripe gives up a delivery after some ten seconds. */
const BUDGET_MS = 8_000;

/** All that is read of a notice: which payment it is about. Metadata is ours, on each of the objects. */
const notice = z.object({
  data: z.object({
    object: z.object({
      metadata: z.object({ paymentId: z.string().regex(/^pay_[0-9A-Z]{26}$/) }),
    }),
  }),
});

const paymentOfNotice = (body: Buffer): string | undefined => {
  try {
    return notice.safeParse(JSON.parse(body.toString('utf8'))).data?.data.object.metadata.paymentId;
  } catch {
    return undefined;
  }
};

/** Asks about the payment's outcomes, then about what came later; false where Stripe did not say. */
const askAll = async (
  commands: CommandDeps,
  paymentId: string,
  budget: ReturnType<typeof startBudget>,
): Promise<boolean> => {
  const payment = await resolvedInTurn(commands, paymentId, budget);
  if (payment === undefined) return true;
  if (unresolvedOperations(payment.state).length > 0) return false;
  return (await askAbout(commands, paymentId)) !== 'unknown';
};

/** As askAll; false as well where it takes longer than Stripe waits. */
const isKnownNow = async (commands: CommandDeps, paymentId: string): Promise<boolean> => {
  try {
    const budget = startBudget(BUDGET_MS);
    return await withinBudget(askAll(commands, paymentId, budget), budget, new Set());
  } catch (error) {
    if (error instanceof BudgetSpent) return false;
    throw error;
  }
};

/** Registers the route; the signature over the raw body stands in the place of a token. */
export const registerStripeWebhook = (
  app: FastifyInstance,
  { secrets, unsignedRate, commands }: StripeWebhookOptions,
): void => {
  const unsigned = createRateLimiter();
  app.post(STRIPE_WEBHOOK_PATH, async (request, reply) => {
    const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
    const header = request.headers['stripe-signature'];
    const signature = Array.isArray(header) ? header.join() : (header ?? '');
    if (!isSignedByStripe(body, signature, secrets, commands.nowMs())) {
      const seconds = unsigned.take(request.raw.socket.remoteAddress ?? '', unsignedRate);
      if (seconds === undefined)
        return reject(reply, 'UNAUTHORIZED', ['the signature is missing or not valid']);
      const retry = { 'retry-after': String(seconds) };
      return reject(reply, 'RATE_LIMITED', ['too many requests; try again later'], retry);
    }
    const paymentId = paymentOfNotice(body);
    request.paymentId = paymentId;
    // A notice about what this service did not make is accepted: nothing here is to be asked.
    if (paymentId === undefined || (await isKnownNow(commands, paymentId)))
      return reply.type('application/json').send('{"received":true}');
    const details = ['the outcome is not known yet; deliver the notice again'];
    return reject(reply, 'SERVICE_UNAVAILABLE', details, RETRY_LATER);
  });
};
