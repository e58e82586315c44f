/** What auditors rest on (port.ts, `stored`): every driver hands out what it has stored, whole. */
import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, test } from '@jest/globals';
import { hashOf } from '../../shared/event-store/chain.ts';
import { decode } from '../../shared/event-store/codec.ts';
import {
  logCheck,
  streamsCheck,
  verifyStreamForms,
} from '../../shared/event-store/verify-chain.ts';
import { auditStreamOf } from '../../shared/payment/payment-events.ts';
import { eventStoreDrivers } from '../support/drivers.ts';
import { newEvent, wholeLife } from '../support/payment-events.ts';

for (const driver of eventStoreDrivers) {
  const suite = driver.skip === undefined ? describe : describe.skip;
  const reason = driver.skip === undefined ? '' : `, skipped: ${driver.skip}`;
  suite(`stored forms on ${driver.name}${reason}`, () => {
    afterAll(async () => driver.end?.());

    test('each event under its hash, in both orders, and every link holds', async () => {
      const place = await driver.make();
      const store = await place.open();
      const { stored } = store;
      if (stored === undefined) throw new Error('a driver without its stored forms');
      const { position: start } = await store.head(null);
      const name = randomUUID().slice(0, 8);
      const stream = `payment-${name}`;
      const events = await store.append(
        stream,
        'none',
        wholeLife(name).map((e) => newEvent(e)),
      );
      await store.append(
        auditStreamOf(name),
        'none',
        wholeLife(name).map((e) => newEvent(e)),
      );

      const forms = await stored.readStream(stream);
      expect(forms.map((form) => decode(form))).toEqual(events);
      for (const { text, hash } of forms) expect(hashOf(text)).toBe(hash);
      expect(verifyStreamForms(forms)).toBeUndefined();

      const all = await stored.readAll(start, 1000);
      const streams = all.map((form) => form.stream);
      expect(streams.filter((one) => one === stream)).toHaveLength(6);
      expect(streams.filter((one) => one === auditStreamOf(name))).toHaveLength(6);
      const first = await stored.readAll(null, 1000);
      const check = stored.guarantee === 'log' ? logCheck() : streamsCheck(stored.readStream);
      for (const form of first) expect(await check(form)).toBeUndefined();
      expect(await stored.readStream('payment-unknown')).toEqual([]);
      await store.close();
      await place.remove();
    });
  });
}
