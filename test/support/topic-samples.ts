/** One message of every type, always the same ones: what readers of the topics were promised. */
import { hashOf } from '../../shared/event-store/chain.ts';
import { asPaymentEvent } from '../../shared/event-store/fold-stream.ts';
import { followPaymentStates } from '../../shared/event-store/payment-states.ts';
import type { NewEvent, RecordedEvent } from '../../shared/event-store/port.ts';
import { type EventData, type PaymentEvent, streamOf } from '../../shared/payment/events.ts';
import type { MaskedCard, PaymentDetails } from '../../shared/payment/fields.ts';
import { takeApart } from '../../shared/payment/response.ts';
import { SEALS_STREAM, type SealEvent } from '../../shared/payment/seal-events.ts';
import { isIntent } from '../../shared/payment/transitions.ts';
import { sealMessageOf } from '../../topics/batch.ts';
import { eventMessage, stateMessage } from '../../topics/messages.ts';
import { type FeedMessage, PARTITIONS_DEFAULT } from '../../topics/port.ts';
import type { MessageType } from '../../topics/schemas.ts';
import { everyDetail } from './every-detail.ts';
import { memoryEventStore } from './memory-event-store.ts';
import {
  authenticationRequested,
  authorizationExpired,
  authorizationExpiring,
  authorized,
  captureDeclined,
  captured,
  captureObserved,
  captureRequested,
  disputeClosed,
  disputed,
  erasureHeld,
  erasureReleased,
  erasureRequested,
  failed,
  operationId,
  outcomeConfirmed,
  outcomeContradicted,
  personalDataErased,
  providerOpened,
  refundDeclined,
  refunded,
  refundFailed,
  refundObserved,
  refundRequested,
  resolutionRequested,
  SEALED,
  timeOf,
  voidDeclined,
  voided,
  voidObserved,
  voidRequested,
} from './payment-events.ts';

const holderName = 'PRIVATE-HOLDER';
const itemName = 'PRIVATE-ITEM-NAME';
const descriptor = 'PRIVATE-DESCRIPTOR';
const gateway = 'PRIVATE-GATEWAY';
const reason = 'PRIVATE-REASON';
const actor = 'PRIVATE-ACTOR';
const evidence = 'PRIVATE-EVIDENCE';
const consumer = {
  firstName: 'PRIVATE-FIRST',
  lastName: 'PRIVATE-LAST',
  email: 'someone@private.example',
  phone: '+15550142',
  ip: '203.0.113.42',
};
const address = {
  street: 'PRIVATE-STREET',
  city: 'PRIVATE-CITY',
  state: 'PRIVATE-STATE',
  zip: 'PRIVATE-ZIP',
  country: 'PRIVATE-COUNTRY',
};
const recipient = { firstName: 'PRIVATE-SHIP-FIRST', lastName: 'PRIVATE-SHIP-LAST' };
const identity = { fingerprint: 'PRIVATE-FINGERPRINT', keyHash: 'PRIVATE-KEYHASH' };

/** What must never leave: each is told apart from anything else in a message. */
export const PRIVATE_VALUES = [
  ...[holderName, itemName, descriptor, gateway, reason, actor, evidence],
  ...[consumer, address, recipient, identity].flatMap((one) => Object.values<string>(one)),
];

const resolution = { evidence };
const providerReference = 'prov_1';

const threeDSecure = {
  version: '2.2.0' as const,
  eci: '05',
  transactionId: '4bd1d5b8-7c1e-4b42-9d55-3f1a8c2e6b70',
};

const card = {
  bin: '42424242',
  last4: '4242',
  holderName,
  cvvPresentDuringAttempt: true,
  expiryMonth: '12',
  expiryYear: '2030',
  brand: 'VISA',
};

/** The frozen messages are of events of version 1, which had texts of a person in the clear. */
type FirstVersion = Omit<
  EventData<'PaymentCreated'>,
  'card' | 'details' | 'personal' | 'amount'
> & {
  amount: number;
  card: MaskedCard;
  details: PaymentDetails;
};
/** So that a field that is new is in a message without a sample of its own. */
export const EVERY_DETAIL = everyDetail((place) => `given ${place}`);
const USUAL: FirstVersion = {
  operationId: operationId(0),
  amount: 2500,
  currency: 'USD',
  paymentId: 'pay_1',
  merchantId: 'm_1',
  captureNow: false,
  card: { ...card, holderName: 'Jane Doe' },
  details: { merchantReference: 'order-1' },
  identity: { fingerprint: 'f'.repeat(64) },
};
const created = (data: Partial<FirstVersion> = {}): PaymentEvent =>
  ({ type: 'PaymentCreated', data: { ...USUAL, ...data } }) as unknown as PaymentEvent;

/** As it is stored now. */
const sealedForm = ({ type, data }: PaymentEvent): PaymentEvent => {
  if (type === 'PaymentCreated') {
    const { group: _sealed, ...open } = takeApart(data as unknown as FirstVersion);
    return { type, data: { ...data, ...open, personal: SEALED } };
  }
  const reason = isIntent({ type, data } as PaymentEvent) && 'reason' in data ? SEALED : undefined;
  return { type, data: reason ? { ...data, reason } : data } as PaymentEvent;
};

/** A payment with every optional field there is, but for those of `laterLives`. */
const full = created({
  merchantId: 'm_é 1',
  card,
  identity,
  details: {
    merchantReference: 'order-1',
    descriptor,
    goodsType: 'PHYSICAL',
    productItems: [
      { id: 'sku-1', name: itemName, quantity: 2, unitPrice: 1250, goodsType: 'PHYSICAL' },
    ],
    consumer,
    billing: { address },
    shipping: { address, ...recipient },
    previousFailures: [
      { gateway, attemptNumber: 1, responseCode: '05', reason, timestamp: gateway },
    ],
    source: { storeId: 'store-1', initiatedBy: 'CONSUMER', externalMerchantId: 'ext-1' },
  },
});

const CLEAR = { reason } as object;

const lives: PaymentEvent[][] = [
  [
    full,
    authorized({ providerReference, resolution }),
    captureRequested({ operationId: operationId(1), identity, ...CLEAR }),
    captureDeclined({ operationId: operationId(1), resolution }),
    captureRequested({ operationId: operationId(2), amount: 2000, identity }),
    captured({ operationId: operationId(2), amount: 2000, releasedAmount: 500, providerReference }),
    refundRequested({ operationId: operationId(3), amount: 800, identity, ...CLEAR }),
    refundDeclined({ operationId: operationId(3), amount: 800 }),
    refundRequested({ operationId: operationId(4), amount: 800, identity }),
    refunded({ operationId: operationId(4), amount: 800, providerReference }),
  ],
  [created({ paymentId: 'pay_2' }), failed()],
  [
    created({ paymentId: 'pay_3' }),
    authorized(),
    voidRequested({ operationId: operationId(1), identity, ...CLEAR }),
    voidDeclined({ operationId: operationId(1) }),
    voidRequested({ operationId: operationId(2) }),
    voided({ operationId: operationId(2), providerReference }),
  ],
  [
    created({ paymentId: 'pay_4' }),
    resolutionRequested({ evidence, requestedBy: actor, withoutFence: true }),
    failed({ resolution: { evidence, requestedBy: actor, requestEvidence: evidence } }),
    outcomeContradicted({ providerReference }),
    outcomeConfirmed({ providerReference, resolution }),
  ],
];

/** Stored after the seals: the frozen messages before them keep their ids. */
const laterLives: PaymentEvent[][] = [
  [created({ paymentId: 'pay_5' }), providerOpened({ providerReference })],
  [created({ paymentId: 'pay_6' }), authorized(), authorizationExpired()],
  [
    created({ paymentId: 'pay_7', captureNow: true }),
    authorized(),
    captured(),
    refundRequested({ amount: 800 }),
    refunded({ amount: 800 }),
    refundFailed({ amount: 800, providerFailureCode: 'lost_or_stolen_card' }),
    refundObserved({ amount: 300 }),
    disputed(),
    disputeClosed(),
  ],
  [
    created({ paymentId: 'pay_8' }),
    authorized(),
    captureObserved({ amount: 2000, releasedAmount: 500 }),
  ],
  [created({ paymentId: 'pay_9' }), authorized(), voidObserved()],
  [
    created({ paymentId: 'pay_10' }),
    failed({ advice: 'USE_ANOTHER_CARD', networkDeclineCode: '05', networkAdviceCode: '03' }),
  ],
  [created({ paymentId: 'pay_11', details: { metadata: { order: '7', empty: '' } } })],
  [
    created({ paymentId: 'pay_12' }),
    authorized({ authorizationExpiresAt: '2026-01-08T00:00:00.000Z' }),
  ],
  [created({ paymentId: 'pay_13', card: { ...card, threeDSecure } })],
  [created({ paymentId: 'pay_14' }), authenticationRequested(), authorized()],
  [
    created({ paymentId: 'pay_15' }),
    authorized({ authorizationExpiresAt: '2026-01-08T00:00:00.000Z' }),
    authorizationExpiring(),
  ],
  [
    created({ paymentId: 'pay_16' }),
    failed(),
    erasureRequested(),
    erasureHeld(),
    erasureReleased(),
    personalDataErased(),
  ],
  [created({ paymentId: 'pay_17', details: EVERY_DETAIL })],
];

const seal: SealEvent = {
  type: 'LogSealed',
  data: {
    log: '01980001-7c1e-4b42-9d55-3f1a8c2e6b70',
    position: '21',
    logHash: 'ab'.repeat(32),
    eventsMax: 10_000,
    publicKey: 'uhD52RXojehkUWdBBJFFSGtpMqrKYeaa9nqHJFejvXs',
    keyId: 'a376ce48bc3f8efc',
    signature:
      'PTl7eNU17f6fHdp94gYqIjgGNignoKqGpPBCZBZbM_C6JQLbLEU6mxEsW6TXIfOfAKh3gb8YV6LEOlHgtw1FAg',
  },
};

const rotation: SealEvent = {
  type: 'SealingKeyRotated',
  data: {
    log: '01980001-7c1e-4b42-9d55-3f1a8c2e6b70',
    position: '22',
    logHash: 'cd'.repeat(32),
    eventsMax: 10_000,
    oldPublicKey: 'iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w',
    oldKeyId: '34750f98bd59fcfc',
    newPublicKey: 'gTl3Dqh9F19Wo1Rmw0x-zMuNipG07jeiXfYPW4_Js5Q',
    newKeyId: '6a3803d5f059902a',
    signature:
      'ngfdEzRGQl0I04Vk52UKQ6R6MGuRKqODvzM9YIuOGp9D0-3pJXp9hab9UoJ9B2saRA2Xuzb6MZUuWqcSkIvRCw',
    newSignature:
      'cyh9dZNAiJIWUn4Elf7yGMWecazs99bQnaUCZIvWfaKk2tbOj7WtOu8_0DdpVXfBih7C56p1C5NdqgMVY_f7Cg',
  },
};

const idOf = (n: number): string => `01980000-0000-7000-8000-${String(n).padStart(12, '0')}`;

/**
 * The hashes in the frozen messages, which are not those of the stored form. A message copies the
 * hash of its event without reading it, so any fixed value shows that the hash arrives.
 */
const frozenHashesOf = (stream: string, batch: NewEvent[]): [id: string, hash: string][] => {
  let hash = '';
  return batch.map((event, revision) => {
    hash = hashOf(JSON.stringify([hash, stream, revision, event]));
    return [event.id, hash];
  });
};

/** Every message of these payments, in the order of the log: the event's, then the state's. */
export const allSampleMessages = async (): Promise<FeedMessage[]> => {
  const store = memoryEventStore();
  const hashes = new Map<string, string>();
  const context = { actor, requestId: 'req_1', correlationId: 'req_1', causationId: 'req_1' };
  let n = 0;
  const appendLife = async (events: PaymentEvent[], number: number): Promise<void> => {
    const stream = streamOf(`pay_${number}`);
    const batch = events.map((event) => {
      n += 1;
      const caused = { ...context, causationId: idOf(n - 1) };
      return { id: idOf(n), time: timeOf(n), event, context: caused };
    });
    const stored = batch.map((one) => ({ ...one, event: sealedForm(one.event) }));
    await store.append(stream, 'none', stored);
    for (const [id, hash] of frozenHashesOf(stream, batch)) hashes.set(id, hash);
  };
  for (const [at, events] of lives.entries()) await appendLife(events, at + 1);
  const sealed = [seal, rotation].map((event) => {
    n += 1;
    return { id: idOf(n), time: timeOf(n), event, context };
  });
  await store.append(SEALS_STREAM, 'none', sealed);
  for (const [id, hash] of frozenHashesOf(SEALS_STREAM, sealed)) hashes.set(id, hash);
  for (const [at, events] of laterLives.entries()) await appendLife(events, lives.length + at + 1);
  const readModels = followPaymentStates(store);
  const messages: FeedMessage[] = [];
  for (const [number, event] of (await store.readAll(null, 200)).entries()) {
    if (event.stream === SEALS_STREAM) {
      const recorded = event as RecordedEvent;
      const own = { ...recorded, hash: hashes.get(recorded.id) ?? '' };
      messages.push(sealMessageOf(own, PARTITIONS_DEFAULT));
      continue;
    }
    const recorded = asPaymentEvent(event as RecordedEvent);
    const own = { ...recorded, hash: hashes.get(recorded.id) ?? '' };
    const readModel = await readModels.after(own);
    messages.push(eventMessage(own, readModel, { partition: 0, number }));
    messages.push(stateMessage(own, readModel, { partition: 0 }));
  }
  return messages;
};

/** The last message of each type. */
export const sampleMessages = async (): Promise<Map<MessageType, FeedMessage>> => {
  const samples = new Map<MessageType, FeedMessage>();
  for (const message of await allSampleMessages()) {
    const type = /^payments\.([A-Za-z]+)\./.exec(JSON.parse(message.value).type)?.[1];
    if (message.key === 'pay_1' || !samples.has(type as MessageType)) {
      samples.set(type as MessageType, message);
    }
  }
  return samples;
};
