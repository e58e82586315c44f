/** What both peers have in common: the request's schema, the payment, and the check of the token. */
import { randomUUID } from 'node:crypto';
import { jwtVerify } from 'jose';
import { z } from 'zod';

const text = z.string().min(1).max(255);
const maybe = z.string().max(255).optional();
const amount = z.int().min(1).max(99_999_999);
const goodsType = z.enum(['PHYSICAL', 'DIGITAL', 'MIXED']).optional();
const address = z
  .object({ street: maybe, city: maybe, country: maybe, state: maybe, zip: maybe })
  .optional();

export const PaymentRequest = z.object({
  amount,
  currency: z.string().regex(/^[A-Z]{3}$/),
  captureNow: z.boolean().default(true),
  merchantReference: maybe,
  descriptor: maybe,
  goodsType,
  paymentMethod: z.object({
    type: z.literal('CARD'),
    card: z.object({
      number: z.string().regex(/^[0-9]{12,19}$/),
      holderName: text,
      cvv: maybe,
      expiryMonth: z.string().regex(/^(0[1-9]|1[0-2])$/),
      expiryYear: z.string().regex(/^[0-9]{4}$/),
      brand: maybe,
    }),
  }),
  productItems: z
    .array(z.object({ id: text, name: text, quantity: amount, unitPrice: amount, goodsType }))
    .max(200)
    .optional(),
  consumer: z
    .object({ firstName: text, lastName: maybe, email: text, phone: maybe, ip: maybe })
    .optional(),
  billing: z.object({ address }).optional(),
  shipping: z.object({ address, firstName: maybe, lastName: maybe }).optional(),
  source: z.object({ storeId: text, initiatedBy: maybe, externalMerchantId: maybe }).optional(),
});
export type PaymentRequest = z.infer<typeof PaymentRequest>;

/** A payment as it is kept and sent: no card number and no CVV. */
export const newPayment = (merchantId: string, request: PaymentRequest) => {
  const { number, cvv: _, ...shown } = request.paymentMethod.card;
  const card = { ...shown, bin: number.slice(0, 8), last4: number.slice(-4) };
  const createdAt = new Date().toISOString();
  const paymentId = `pay_${randomUUID()}`;
  const start = { paymentId, merchantId, status: 'PENDING', createdAt, updatedAt: createdAt };
  const amounts = { authorizedAmount: 0, capturedAmount: 0, refundedAmount: 0 };
  return { ...request, ...start, ...amounts, paymentMethod: { type: 'CARD', card } };
};
export type Payment = ReturnType<typeof newPayment>;

/** The payment after a provider that approves everything at once and keeps nothing. */
export const approved = async (payment: Payment): Promise<Payment> => {
  const { amount, captureNow } = payment;
  const capturedAmount = captureNow ? amount : 0;
  const transactions = [{ type: captureNow ? 'SALE' : 'AUTH', amount, result: 'SUCCEEDED' }];
  const status = captureNow ? 'CAPTURED' : 'AUTHORIZED';
  const changed = { status, authorizedAmount: amount, capturedAmount, transactions };
  return { ...payment, ...changed, updatedAt: new Date().toISOString() };
};

const secret = new TextEncoder().encode(process.env.JWT_SECRET);
const verified = new Map<string, string>();

/** The merchant of a token (HS256), verified once; undefined for a header without a valid one. */
export const merchantOf = async (authorization = ''): Promise<string | undefined> => {
  const known = verified.get(authorization);
  if (known !== undefined) return known;
  const token = authorization.replace('Bearer ', '');
  const result = await jwtVerify(token, secret, { algorithms: ['HS256'] }).catch(() => undefined);
  const merchantId = result?.payload.merchant_id;
  if (typeof merchantId !== 'string') return undefined;
  verified.set(authorization, merchantId);
  return merchantId;
};
