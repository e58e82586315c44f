/** Every place where a process that carries payments out with Stripe can be killed, by name. */
import { CRASH_POINTS, type CrashPoint, OPERATIONS } from './crash-points.ts';
import type { Step } from './stripe-double/server.ts';

type Operation = (typeof OPERATIONS)[number];

/** The requests to Stripe, in order; the last one moves the money. Two of a create go side by side. */
const REQUESTS: Readonly<Record<Operation, readonly Step[]>> = {
  authorize: ['open', 'method', 'confirm'],
  sale: ['open', 'method', 'confirm'],
  capture: ['capture'],
  void: ['update', 'cancel'],
  refund: ['refund'],
};

/** What Stripe does with a request whose process is killed while it waits for the response. */
export const AT_STRIPE = [
  'hangs before acting',
  'hangs after acting',
  // Only once the next process has asked about it.
  'acts late',
] as const;

/** A process that is killed from outside, while a request of its own is at Stripe. */
export type StripePoint = { operation: Operation; step: Step; fault: (typeof AT_STRIPE)[number] };

export const nameOf = ({ operation, step, fault }: StripePoint): string =>
  `${operation}: ${step} ${fault}`;

export const STRIPE_POINTS: readonly StripePoint[] = OPERATIONS.flatMap((operation) =>
  REQUESTS[operation].flatMap((step) =>
    AT_STRIPE.map((fault): StripePoint => ({ operation, step, fault })),
  ),
);

/** The places in the process itself: what is Stripe's there are `append opened` and the calls. */
export const PROCESS_POINTS: readonly CrashPoint[] = CRASH_POINTS.filter(
  (point) => !/read models|(before|after) confirm$/.test(point),
);
