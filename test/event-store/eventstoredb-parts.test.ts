/**
 * A server that sends each event alone and says "caught up" after each, as KurrentDB 26 does: the driver
 * gathers them, so that a reader still writes once for many.
 */
import { Readable } from 'node:stream';
import { expect, jest, test } from '@jest/globals';
import { fromServer } from '../../shared/event-store/eventstoredb/records.ts';
import { subscribeAndResume } from '../../shared/event-store/eventstoredb/subscription.ts';

const NEVER_MS = 600_000;
const nothing = (): void => undefined;

test('a reader gets in a batch what a server sends each alone; after a rest two events go out as they come', async () => {
  // No event comes too late for the other, however slow the machine is.
  const clock = jest.spyOn(performance, 'now').mockReturnValue(0);
  const call = Object.assign(new Readable({ objectMode: true, read: nothing }), {
    cancel: nothing,
  });
  const stop = new AbortController();
  const options = {
    open: async (_after: unknown, listen: (opened: never) => void) => listen(call as never),
    lags: async () => false,
    ...{ confirmMsMax: NEVER_MS, silenceMsMax: NEVER_MS },
    ...{ logger: { debug: nothing, warn: nothing }, onRemoval: nothing },
    refusals: { note: nothing },
    decode: fromServer,
  };
  const items = subscribeAndResume(options, null, stop.signal);
  const send = (n: number): void => {
    const event = { id: `${n}`, type: 'PaymentCreated', data: {} };
    const position = { commit: BigInt(n), prepare: BigInt(n) };
    call.push({ ...event, streamId: 'payment-1', revision: BigInt(n), position });
    call.push({ caughtUp: {} });
  };
  const next = async (): Promise<number | string> => {
    const { value: item } = await items.next();
    return item?.kind === 'events' ? item.events.length : `${item?.kind}`;
  };
  try {
    for (const n of [0, 1]) {
      const first = next();
      send(n);
      expect(await first).toBe(1);
      if (n === 0) expect(await next()).toBe('caught-up');
    }
    // Before the driver's timer, which begins later and has longer to run, even where both are late.
    setTimeout(() => send(3), 1);
    const gathered = next();
    send(2);
    expect(await gathered).toBe(2);
  } finally {
    stop.abort();
    clock.mockRestore();
  }
});
