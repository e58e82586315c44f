/** What every peer has in common: the request's schema, the payment as it is sent, and a provider. */
import { z } from 'zod';

const text = z.string().min(1).max(255);
const optionalText = z.string().max(255).optional();
const amount = z.int().min(1).max(99_999_999);

const Address = z.object({
  street: optionalText,
  city: optionalText,
  country: optionalText,
  state: optionalText,
  zip: optionalText,
});

export const PaymentRequest = z.object({
  amount,
  currency: z.string().regex(/^[A-Z]{3}$/),
  captureNow: z.boolean().default(true),
  merchantReference: optionalText,
  descriptor: optionalText,
  goodsType: z.enum(['PHYSICAL', 'DIGITAL', 'MIXED']).optional(),
  paymentMethod: z.object({
    type: z.literal('CARD'),
    card: z.object({
      number: z.string().regex(/^[0-9]{12,19}$/),
      holderName: text,
      cvv: optionalText,
      expiryMonth: z.string().regex(/^(0[1-9]|1[0-2])$/),
      expiryYear: z.string().regex(/^[0-9]{4}$/),
      brand: optionalText,
    }),
  }),
  productItems: z
    .array(
      z.object({
        id: text,
        name: text,
        quantity: amount,
        unitPrice: amount,
        goodsType: z.enum(['PHYSICAL', 'DIGITAL']),
      }),
    )
    .max(200)
    .optional(),
  consumer: z
    .object({
      firstName: text,
      lastName: optionalText,
      email: text,
      phone: optionalText,
      ip: optionalText,
    })
    .optional(),
  billing: z.object({ address: Address }).optional(),
  shipping: z
    .object({ address: Address.optional(), firstName: optionalText, lastName: optionalText })
    .optional(),
  source: z
    .object({
      storeId: text,
      initiatedBy: z.enum(['CONSUMER', 'MERCHANT']).optional(),
      externalMerchantId: optionalText,
    })
    .optional(),
});
export type PaymentRequest = z.infer<typeof PaymentRequest>;

/** What is kept of a payment: no card number and no CVV. */
export type Payment = Omit<PaymentRequest, 'paymentMethod'> & {
  paymentId: string;
  merchantId: string;
  status: 'PENDING' | 'AUTHORIZED' | 'CAPTURED';
  card: { bin: string; last4: string; holderName: string; expiryMonth: string; expiryYear: string };
  createdAt: string;
  updatedAt: string;
};

export const newPayment = (
  paymentId: string,
  merchantId: string,
  { paymentMethod, ...request }: PaymentRequest,
): Payment => {
  const { number, holderName, expiryMonth, expiryYear } = paymentMethod.card;
  const now = new Date().toISOString();
  const masked = { bin: number.slice(0, 8), last4: number.slice(-4) };
  const card = { ...masked, holderName, expiryMonth, expiryYear };
  const times = { createdAt: now, updatedAt: now };
  return { ...request, paymentId, merchantId, status: 'PENDING', card, ...times };
};

export const approved = (payment: Payment): Payment => ({
  ...payment,
  status: payment.captureNow ? 'CAPTURED' : 'AUTHORIZED',
  updatedAt: new Date().toISOString(),
});

/** As the contract sends it, with the amounts that follow from the state. */
export const responseOf = ({ card, merchantId: _, ...payment }: Payment) => ({
  ...payment,
  paymentMethod: { type: 'CARD', card },
  authorizedAmount: payment.status === 'PENDING' ? 0 : payment.amount,
  capturedAmount: payment.status === 'CAPTURED' ? payment.amount : 0,
  refundedAmount: 0,
  transactions: [
    { type: payment.captureNow ? 'SALE' : 'AUTH', amount: payment.amount, result: 'SUCCEEDED' },
  ],
});

/** A provider that approves everything at once and keeps nothing. */
export const callProvider = async (_operationId: string): Promise<'APPROVED'> => 'APPROVED';
