/** Look-ups of documents that share calls: fewer calls, and never a document from before its GET. */
import { describe, expect, test } from '@jest/globals';
import { shareLookUps } from '../../shared/read-models/mongodb/reader.ts';

type Stored = { _id: string; revision: number };

/** A store whose calls end when the test says so; each reads what is stored when it begins. */
const openStore = () => {
  const stored = new Map<string, number>();
  const calls: { ids: string[]; end(error?: Error): void }[] = [];
  const lookUp = shareLookUps<Stored>((ids) => {
    const found = ids.flatMap((_id) => {
      const revision = stored.get(_id);
      return revision === undefined ? [] : [{ _id, revision }];
    });
    const { promise, resolve, reject } = Promise.withResolvers<Stored[]>();
    calls.push({ ids, end: (error) => (error === undefined ? resolve(found) : reject(error)) });
    return promise;
  });
  return { stored, calls, lookUp };
};

const turn = () => new Promise(setImmediate);

describe('look-ups that come at a time share a call', () => {
  test('those that come while a call is under way share the next one', async () => {
    const { stored, calls, lookUp } = openStore();
    stored.set('pay_1', 1).set('pay_2', 2);
    const first = lookUp('pay_1');
    await turn();
    const others = ['pay_2', 'pay_3', 'pay_2'].map(lookUp);
    await turn();
    expect(calls.map(({ ids }) => ids)).toEqual([['pay_1']]);
    calls[0]?.end();
    await turn();
    calls[1]?.end();
    expect(calls.map(({ ids }) => ids)).toEqual([['pay_1'], ['pay_2', 'pay_3']]);
    expect([await first, ...(await Promise.all(others))]).toEqual([
      { _id: 'pay_1', revision: 1 },
      { _id: 'pay_2', revision: 2 },
      undefined,
      { _id: 'pay_2', revision: 2 },
    ]);
  });

  test('P4: a look-up never gets a document that was read before it came', async () => {
    const { stored, calls, lookUp } = openStore();
    stored.set('pay_1', 0);
    const before = lookUp('pay_1');
    await turn();
    stored.set('pay_1', 1);
    const after = lookUp('pay_1');
    calls[0]?.end();
    await turn();
    calls[1]?.end();
    expect([(await before)?.revision, (await after)?.revision]).toEqual([0, 1]);
  });

  test('a call that fails fails for the requests that share it, and for no other', async () => {
    const { stored, calls, lookUp } = openStore();
    stored.set('pay_3', 3);
    const shared = [lookUp('pay_1'), lookUp('pay_2')].map((one) => expect(one).rejects.toThrow());
    await turn();
    const next = lookUp('pay_3');
    calls[0]?.end(new Error('unavailable'));
    await Promise.all(shared);
    await turn();
    calls[1]?.end();
    expect(await next).toEqual({ _id: 'pay_3', revision: 3 });
  });
});
