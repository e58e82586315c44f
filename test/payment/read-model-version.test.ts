/** Stored read models are filled anew after any change of their form, so the form has a number. */
import { createHash } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { z } from 'zod';
import { PaymentResponse } from '../../shared/http/payment-schemas.ts';
import { READ_MODEL_VERSION } from '../../shared/payment/fold.ts';

/** Texts for people change nothing that is stored. */
const withoutTexts = (key: string, value: unknown) => (key === 'description' ? undefined : value);

test('a changed form of the read models has a new READ_MODEL_VERSION, so that stored ones are filled anew', () => {
  const form = JSON.stringify(z.toJSONSchema(PaymentResponse), withoutTexts);
  const hash = createHash('sha256').update(form).digest('hex').slice(0, 16);
  expect({ version: READ_MODEL_VERSION, hash }).toEqual({ version: 8, hash: '27be5df7ba879c56' });
});
