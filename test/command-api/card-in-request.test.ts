/** No request stores its own card number, in whatever clothes and under whichever key (gaps §4). */
import { describe, expect, test } from '@jest/globals';
import { APPROVED, NO_RETRIES, PAYMENTS, serviceOfTests } from '../support/service-in-process.ts';

const service = await serviceOfTests(NO_RETRIES);

const OTHER = '5555555555554444';
const card = { number: APPROVED, holderName: 'Ada', expiryMonth: '12', expiryYear: '2030' };
const body = { amount: 1500, currency: 'USD', paymentMethod: { type: 'CARD', card } };

/** The details of a 400 to a create whose body is this text; else its status. */
const detailsOf = async (text: string, key?: string) => {
  const { status, json } = await service.ask('POST', PAYMENTS, text, key ? { key } : {});
  return status === 400 ? json.details : status;
};
const HOLDS = 'must not hold the card number';

describe('a create', () => {
  test('S6: with its own number as a number below zero is 400', async () => {
    const previousFailures = [{ attemptNumber: -Number(APPROVED) }];
    const text = JSON.stringify({ ...body, previousFailures });
    expect(await detailsOf(text)).toEqual([`previousFailures[0].attemptNumber ${HOLDS}`]);
  });

  test.each([
    ['the same object', (text: string) => text.replace('"number"', `"number":"${OTHER}","number"`)],
    [
      'blocks',
      (text: string) => text.replace('"number"', `"number":"5555 5555.5555 4444","number"`),
    ],
    [
      'digits of another script',
      (text: string) =>
        text.replace('"number"', '"number":"５５５５５５５５５５５５４４４４","number"'),
    ],
    ['a JSON number', (text: string) => text.replace('"number"', `"number":${OTHER},"number"`)],
    [
      'an escaped key',
      (text: string) => text.replace('"number"', `"\\u006eumb\\u0065r":"${OTHER}","number"`),
    ],
    [
      'an object that is there twice',
      (text: string) =>
        text.replace(
          '"paymentMethod"',
          `"paymentMethod":{"card":{"number" : "${OTHER}"}},"paymentMethod"`,
        ),
    ],
    [
      'an unknown field',
      (text: string) => text.replace('"amount"', `"x":[{"y":{"number":"${OTHER}"}}],"amount"`),
    ],
    ['the CVV', (text: string) => text.replace('"number"', `"cvv":"${OTHER}","number"`)],
    [
      'the first of two CVVs',
      (text: string) => text.replace('"number"', `"cvv":"${OTHER}","cvv":"123","number"`),
    ],
  ])(
    'whose first number stands in %s must not hold that one in a descriptor',
    async (_where, twice) => {
      const text = JSON.stringify({ ...body, descriptor: 'x 5555 5555 5555 4444' });
      expect(await detailsOf(twice(text))).toEqual([`descriptor ${HOLDS}`]);
      expect(await detailsOf(twice(JSON.stringify(body)))).toBe(200);
    },
  );

  test('may hold digits that letters stand between, a date with a time, and another number', async () => {
    const fields = {
      merchantReference: `a${APPROVED.replace(/\d{4}/g, '$&x')}`,
      descriptor: '2026-11-22 11:13:06.123',
      source: { storeId: OTHER },
    };
    expect(await detailsOf(JSON.stringify({ ...body, ...fields }))).toBe(200);
  });
});

describe('another card number in free text', () => {
  const counted = () => service.metric('payments_card_like_texts_total');

  test('is accepted, and counted without a word of whose it is', async () => {
    const before = await counted();
    const { json } = await service.create({ merchantReference: `order ${OTHER}` });
    expect(json.merchantReference).toBe(`order ${OTHER}`);
    const { status } = await service.change('capture', json.paymentId, {
      reason: 'for 5555.5555.5555.4444',
    });
    expect(status).toBe(200);
    await service.create({ merchantReference: 'order 5555555555554445' });
    expect(await counted()).toBe(before + 2);
  });
});
