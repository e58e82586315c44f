/** The largest payment that the contract allows: every text at its maximum, and any number of operations. */
import { sealBox } from '../../personal-data/box.ts';
import { type PaymentEvent, streamOf } from '../../shared/payment/events.ts';
import type { PaymentDetails } from '../../shared/payment/fields.ts';
import { takeApart } from '../../shared/payment/response.ts';
import {
  authorized,
  CARD_KEPT,
  captured,
  created,
  operationId,
  refundDeclined,
  refunded,
  refundRequested,
  SEALED,
} from './payment-events.ts';
import { newPersonalKey } from './personal-data.ts';

/** As long as any text of a request may be, in characters of three bytes each. */
const LONG = '\u20ac'.repeat(255);
const LONG_CODE = 'c'.repeat(64);
const address = { street: LONG, city: LONG, state: LONG, zip: LONG, country: LONG };
const item = (n: number) => ({
  id: `${n}${LONG}`.slice(0, 255),
  name: LONG,
  quantity: 999_999,
  unitPrice: 99_999_999,
  goodsType: 'PHYSICAL' as const,
});

/** 200 items, and every other optional field. */
const details: PaymentDetails = {
  merchantReference: LONG,
  descriptor: LONG,
  goodsType: 'PHYSICAL',
  productItems: Array.from({ length: 200 }, (_, n) => item(n)),
  consumer: { firstName: LONG, lastName: LONG, email: LONG, phone: LONG, ip: LONG },
  billing: { address },
  shipping: { address, firstName: LONG, lastName: LONG },
  metadata: Object.fromEntries(
    Array.from({ length: 20 }, (_, n) => [`${n}${'m'.repeat(38)}`.slice(0, 40), LONG]),
  ),
  source: { storeId: LONG, initiatedBy: 'CONSUMER', externalMerchantId: LONG },
};

const CARD = { ...CARD_KEPT, holderName: LONG };

/** The first event, with every text at its maximum, and all items that there may be or fewer. */
export const largestCreated = (
  paymentId: string,
  merchantId = 'm_test',
  items = 200,
): PaymentEvent => {
  const productItems = details.productItems?.slice(0, items) ?? [];
  const fields = { paymentId, merchantId, captureNow: true, amount: 99_999_999 };
  const card = { ...CARD, holderName: LONG };
  const { group, ...open } = takeApart({ card, details: { ...details, productItems } });
  const place = { stream: streamOf(paymentId), eventType: 'PaymentCreated', field: 'personal' };
  return created({ ...fields, ...open, personal: sealBox(newPersonalKey(), place, group) });
};

const ONE_CENT = { currency: 'USD', amount: 1 };

/** A sale and refunds of one cent: `operations` in all, two events each and three of the sale. */
export const refundsOfOneCent = (first: PaymentEvent, operations: number): PaymentEvent[] => {
  const sale = { amount: 99_999_999 };
  const refunds = Array.from({ length: operations - 1 }, (_, n) => operationId(n + 1)).flatMap(
    (operation) => [
      refundRequested({ ...ONE_CENT, operationId: operation, reason: SEALED }),
      refunded({ ...ONE_CENT, operationId: operation, providerReference: operation }),
    ],
  );
  return [first, authorized(sale), captured(sale), ...refunds];
};

/** The same with refunds that all failed, which are the longest entries of `transactions`. */
export const declinedRefunds = (first: PaymentEvent, operations: number): PaymentEvent[] =>
  refundsOfOneCent(first, operations).map((event) =>
    event.type === 'PaymentRefunded'
      ? refundDeclined({
          ...ONE_CENT,
          operationId: event.data.operationId,
          failureCode: 'AUTHENTICATION_REQUIRED',
          providerFailureCode: LONG_CODE,
        })
      : event,
  );
