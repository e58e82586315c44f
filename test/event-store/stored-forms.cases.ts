/** What auditors rest on (port.ts, `stored`): every driver hands out what it has stored, whole. */
import { describe, expect, test } from '@jest/globals';
import {
  beforeIn,
  hashOf,
  logHashes,
  storedCheck,
  verifyStream,
} from '../../shared/event-store/chain.ts';
import { decode } from '../../shared/event-store/codec.ts';
import type { EventStore, Position } from '../../shared/event-store/port.ts';
import { auditStreamOf } from '../../shared/payment/audit-events.ts';
import { newEvent, wholeLife } from '../support/payment-events.ts';
import { collect, type EventStoreDriver, eventsOf, openForGroup, placed } from './opened.ts';

export const storedFormCases = (driver: EventStoreDriver): void => {
  describe('stored forms', () => {
    let store: EventStore;
    let start: Position | null;
    let run: string;
    openForGroup(driver, (opened) => {
      ({ store, start } = opened);
      run = opened.run.slice(0, 8);
    });
    const storedOf = (opened: EventStore) => {
      if (opened.stored === undefined) throw new Error('the driver has no stored forms');
      return opened.stored;
    };

    test('each event under its hash, in both orders, and every link holds', async () => {
      const stored = storedOf(store);
      const life = () => wholeLife(run).map((event) => newEvent(event));
      const stream = `payment-${run}`;
      const events = await placed(store, store.append(stream, 'none', life()));
      await store.append(auditStreamOf(run), 'none', life());

      const forms = await stored.readStream(stream);
      expect(forms.map((form) => decode(form))).toEqual(events);
      for (const { text, hash } of forms) expect(hashOf(text)).toBe(hash);
      expect(verifyStream(forms)).toBeUndefined();

      const all = await stored.readAll(start, 1000);
      const streams = all.map((form) => form.stream);
      expect(streams.filter((one) => one === stream)).toHaveLength(6);
      expect(streams.filter((one) => one === auditStreamOf(run))).toHaveLength(6);
      const first = await stored.readAll(null, 100);
      const check = storedCheck(beforeIn(stored), stored.guarantee);
      for (const form of first) expect(await check(form)).toBeUndefined();
      expect(await stored.readStream('payment-unknown')).toEqual([]);
    });

    test('one log hash over all events, the same for every reader in their order', async () => {
      const stored = storedOf(store);
      const events = wholeLife(run).map((event) => newEvent(event));
      await store.append(`payment-${run}`, 'none', events);
      const before = start === null ? null : await store.hashAt(start);
      const linked = logHashes(before?.logHash);
      const forms = await stored.readAll(start, 1000);
      const byForms = forms.map(({ hash }) => linked({ hash }).logHash);
      const items = await collect(store, start, (read) => eventsOf(read).length >= forms.length);
      const delivered = eventsOf(items).slice(0, forms.length);
      const byEvents = delivered.map(({ hash = '' }) => ({ hash })).map(logHashes(before?.logHash));
      expect(byEvents.map(({ logHash }) => logHash)).toEqual(byForms);
      const isKept = stored.guarantee === 'log';
      expect(delivered.at(-1)?.logHash).toBe(isKept ? byForms.at(-1) : undefined);
    });
  });
};
