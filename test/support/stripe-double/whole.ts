/** Stripe's objects at their whole size, about 7 kB a PaymentIntent: what the books keep, and what is always there. */
import type Stripe from 'stripe';

const BILLING = {
  address: {
    city: 'Example City',
    country: 'US',
    line1: '1 Example Street',
    line2: null,
    postal_code: '10001',
    state: 'NY',
  },
  email: null,
  name: 'Jane Doe',
  phone: null,
  tax_id: null,
};

const REST_OF_INTENT = {
  amount_details: { tip: {} },
  application: null,
  application_fee_amount: null,
  automatic_payment_methods: null,
  canceled_at: null,
  confirmation_method: 'automatic',
  customer_account: null,
  description: null,
  excluded_payment_method_types: null,
  livemode: false,
  next_action: null,
  on_behalf_of: null,
  payment_method: null,
  payment_method_configuration_details: null,
  payment_method_options: {
    card: {
      installments: null,
      mandate_options: null,
      network: null,
      request_three_d_secure: 'automatic',
    },
  },
  payment_method_types: ['card'],
  payment_record: null,
  processing: null,
  receipt_email: null,
  review: null,
  setup_future_usage: null,
  shipping: null,
  source: null,
  statement_descriptor: null,
  statement_descriptor_suffix: null,
  transfer_data: null,
  transfer_group: null,
} satisfies Partial<Stripe.PaymentIntent>;

const REST_OF_CARD = {
  authorization_code: '123456',
  brand: 'visa',
  checks: {
    address_line1_check: 'pass',
    address_postal_code_check: 'pass',
    cvc_check: 'pass',
  },
  country: 'US',
  exp_month: 12,
  exp_year: 2030,
  extended_authorization: { status: 'disabled' },
  fingerprint: 'exampleFingerprint',
  funding: 'credit',
  incremental_authorization: { status: 'unavailable' },
  installments: null,
  last4: '4242',
  mandate: null,
  multicapture: { status: 'unavailable' },
  network: 'visa',
  network_token: { used: false },
  network_transaction_id: '123456789012345',
  overcapture: { maximum_amount_capturable: 0, status: 'unavailable' },
  regulated_status: 'unregulated',
  three_d_secure: null,
  wallet: null,
} satisfies Partial<Stripe.Charge.PaymentMethodDetails.Card>;

const REST_OF_CHARGE = {
  application: null,
  application_fee: null,
  application_fee_amount: null,
  balance_transaction: null,
  billing_details: BILLING,
  calculated_statement_descriptor: 'EXAMPLE SHOP',
  customer: null,
  description: null,
  disputed: false,
  failure_balance_transaction: null,
  failure_code: null,
  failure_message: null,
  fraud_details: {},
  livemode: false,
  on_behalf_of: null,
  outcome: {
    advice_code: null,
    network_advice_code: null,
    network_decline_code: null,
    network_status: 'approved_by_network',
    reason: null,
    risk_level: 'normal',
    risk_score: 12,
    seller_message: 'Payment complete.',
    type: 'authorized',
  },
  paid: true,
  receipt_email: null,
  receipt_number: null,
  receipt_url: `https://pay.stripe.com/receipts/payment/${'Example'.repeat(16)}?s=ap`,
  refunded: false,
  review: null,
  shipping: null,
  source: null,
  source_transfer: null,
  statement_descriptor: null,
  statement_descriptor_suffix: null,
  transfer_data: null,
  transfer_group: null,
} satisfies Partial<Stripe.Charge>;

/** What the books keep of a PaymentIntent. */
type Kept = {
  id: string;
  amount: number;
  amount_received: number;
  created: number;
  currency: string;
  status: string;
  metadata: Record<string, string>;
  latest_charge: { payment_method_details?: { card: object } } | null;
  card?: unknown;
};

const chargeOf = (intent: Kept, amount_refunded: number) => {
  const { id, amount, amount_received, created, currency, latest_charge, metadata } = intent;
  if (latest_charge === null) return null;
  const kept = latest_charge.payment_method_details?.card;
  return {
    ...REST_OF_CHARGE,
    id: id.replace('pi_', 'ch_'),
    amount,
    amount_captured: amount_received,
    amount_refunded,
    captured: amount_received > 0,
    created,
    currency,
    metadata,
    payment_intent: id,
    ...latest_charge,
    payment_method_details: { type: 'card', card: { ...REST_OF_CARD, ...kept } },
  };
};

/** With its charge where that was expanded, else with the id of it. */
export const wholeIntent = (
  { card: _, ...intent }: Kept,
  amountRefunded: number,
  isExpanded: boolean,
) => {
  const charge = chargeOf(intent, amountRefunded);
  return {
    ...REST_OF_INTENT,
    amount_capturable: intent.status === 'requires_capture' ? intent.amount : 0,
    client_secret: `${intent.id}_secret_of_the_double`,
    ...intent,
    latest_charge: isExpanded ? charge : (charge?.id ?? null),
  };
};
