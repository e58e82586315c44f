/** gaps §19: what an opened, erased, moved and foreign box shows, in an answer and in a webhook. */
import { beforeEach, expect, test } from '@jest/globals';
import { sealBox } from '../../personal-data/box.ts';
import { createBodies, createOpener } from '../../personal-data/opener.ts';
import { asPaymentEvent } from '../../shared/event-store/fold-stream.ts';
import { followPaymentStates } from '../../shared/event-store/payment-states.ts';
import type { RecordedEvent } from '../../shared/event-store/port.ts';
import { foldReadModel } from '../../shared/payment/fold.ts';
import { bodyOf, keptBodyOf } from '../../shared/payment/response.ts';
import { openPersonal, type PaymentReadModel } from '../../shared/payment/state.ts';
import { messageAt } from '../../webhooks/message.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import {
  appendPayment,
  authorized,
  captured,
  created,
  newEvent,
  personalDataErased,
  timeOf,
} from '../support/payment-events.ts';
import { memoryKeys } from '../support/personal-data.ts';
import { silentLog } from '../support/silent-log.ts';

const GROUP = {
  holderName: 'Jane Doe',
  consumer: { firstName: 'Jane', email: 'jane@example.com' },
};
const ERASED_AT = timeOf(9);

const sealFor = async (stream: string, group: object) =>
  sealBox(await keys.take(0), { stream, eventType: 'PaymentCreated', field: 'personal' }, group);

let keys: ReturnType<typeof memoryKeys>;
let store: ReturnType<typeof memoryEventStore>;
let opener: ReturnType<typeof createOpener>;
let payment: PaymentReadModel;
let last: RecordedEvent;

beforeEach(async () => {
  keys = memoryKeys();
  store = memoryEventStore();
  opener = createOpener({ keys, store, logger: silentLog });
  const personal = await sealFor('payment-pay_1', GROUP);
  const events = [created({ captureNow: true, personal }), authorized(), captured()];
  const stored = await appendPayment(store, 'pay_1', events);
  payment = foldReadModel(stored.map(asPaymentEvent)) as PaymentReadModel;
  last = stored.at(-1) as RecordedEvent;
});

const shown = async () => bodyOf(payment, await openPersonal(opener.openText, payment));
const erase = async (): Promise<void> => {
  const erased = personalDataErased({ keys: [payment.personal.key as string] });
  const { revision, hash } = last;
  await store.append('payment-pay_1', { revision, hash }, [newEvent(erased, ERASED_AT)]);
  await keys.erase([payment.personal.key as string]);
};

test('a box gives back what was sealed, and an older fold of an erased payment when it was erased', async () => {
  expect(JSON.parse(await shown())).toMatchObject({
    paymentMethod: { card: { holderName: 'Jane Doe' } },
    consumer: GROUP.consumer,
  });
  await erase();
  const body = JSON.parse(await shown());
  expect(body.personalData).toEqual({ erased: true, erasedAt: ERASED_AT });
  expect(body.paymentMethod.encryptedCard.holderName).toBe('ERASED');
  expect(body).not.toHaveProperty('consumer');
});

test('a webhook has the payment that GET shows, to the byte, before an erasure and after it', async () => {
  const sent = async () =>
    (await messageAt(followPaymentStates(store), last, opener.openText))?.body;
  expect(await sent()).toContain(`"payment":${await shown()}}`);
  await erase();
  expect(await sent()).toContain(`"payment":${await shown()}}`);
  expect(await sent()).not.toContain('Jane');
});

test('a box of another payment, and a key of another box, open nothing and are told', async () => {
  const other = await sealFor('payment-pay_2', { holderName: 'John' });
  const moved = { ...payment, personal: other };
  expect(await openPersonal(opener.openText, moved)).toEqual({ unavailable: true });
  const foreign = keys.keys.get(other.key);
  keys.keys.set(payment.personal.key as string, foreign as never);
  expect(await openPersonal(opener.openText, payment)).toEqual({ unavailable: true });
  expect([...opener.missing]).toEqual(['pay_1']);
});

test('a store of keys that is away makes no payment one whose key is missing', async () => {
  keys.faults.away = true;
  expect(JSON.parse(await shown()).personalData).toEqual({ unavailable: true });
  expect(opener.missing.size).toBe(0);
  keys.faults.away = false;
  expect(await shown()).toContain('Jane Doe');
});

const documentAt = (revision: number) => {
  return { paymentId: 'pay_1', revision, body: keptBodyOf(payment) };
};

test('a body is kept by its revision and in its document, and never one that could not be opened', async () => {
  const { bodyOf: shownBodyOf } = createBodies(opener.openText);
  const document = documentAt(2);
  keys.faults.away = true;
  expect(await shownBodyOf(document)).toContain('UNAVAILABLE');
  expect(document).toEqual(documentAt(2));
  keys.faults.away = false;
  const opened = await shownBodyOf(document);
  expect(opened).toBe(await shown());
  expect(document).toEqual({ ...documentAt(2), body: opened, isOpened: true });
  await keys.erase([payment.personal.key as string]);
  expect(await shownBodyOf(documentAt(2))).toBe(opened);
  expect(await shownBodyOf(documentAt(3))).toContain('ERASED');
  expect(await shownBodyOf(documentAt(2))).toContain('ERASED');
});

test('an answer is what a GET shows at its revision, which then reads no key, but for the address of a page', async () => {
  const bodies = createBodies(opener.openText);
  const nextAction = { type: 'REDIRECT', url: 'https://bank.example/page', expiresAt: timeOf(9) };
  const waiting = { ...payment, personal: { clear: GROUP }, nextAction } as PaymentReadModel;
  expect(await bodies.shown(waiting)).toContain('https://bank.example/page');
  expect(await bodies.bodyOf(documentAt(2))).not.toContain('https://bank.example/page');
  const next = await bodies.shown({ ...payment, personal: { clear: GROUP }, revision: 3 });
  keys.faults.away = true;
  expect(await bodies.bodyOf(documentAt(3))).toBe(next);
  expect(await bodies.bodyOf(documentAt(2))).toContain('UNAVAILABLE');
});
