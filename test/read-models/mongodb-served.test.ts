/** Which generation of read models is served, as a process learns it while another one switches. */
import { describe, expect, test } from '@jest/globals';
import { createServed, type Database } from '../../shared/read-models/mongodb/database.ts';

type Look = { respond(generation: number): void; fail(): void };

/** A server whose responses come when the test says so, and in the order that it says. */
const openServed = () => {
  const looks: Look[] = [];
  const findOne = (): Promise<object> =>
    new Promise((resolve, reject) => {
      looks.push({
        respond: (generation) => resolve({ generation }),
        fail: () => reject(new Error('no server')),
      });
    });
  const database = {
    control: { findOne },
    read: <T>(run: () => Promise<T>) => run(),
    generationOf: (n: number) => ({ n }),
  };
  const served = createServed(database as unknown as Database, () => undefined);
  return { served, looks };
};

describe('gaps §9: once the new generation is known, no later read goes to the old one', () => {
  test.each<[string, (looks: Look[]) => Look[]]>([
    ['first', (looks) => looks],
    ['last', (looks) => looks.toReversed()],
  ])('whichever of several looks hears of it: the one that began %s', async (_, inOrder) => {
    const { served, looks } = openServed();
    const found = Promise.all([served.now(), served.now(), served.now()]);
    const [hears, ...others] = inOrder(looks);
    hears?.respond(2);
    for (const look of others) look.respond(1);
    await found;
    expect((await served.now()).n).toBe(2);
  });

  test('a response that was on its way when this process learned of the switch', async () => {
    const { served, looks } = openServed();
    const found = served.now();
    served.set(2);
    looks[0]?.respond(1);
    expect((await found).n).toBe(2);
    expect((await served.now()).n).toBe(2);
  });

  test('a look that is made anew does not wait for the one before it, nor is it overtaken by it', async () => {
    const { served, looks } = openServed();
    const before = served.now();
    served.forget();
    const anew = served.now();
    expect(looks).toHaveLength(2);
    looks[1]?.respond(2);
    expect((await anew).n).toBe(2);
    looks[0]?.respond(1);
    await before;
    expect((await served.now()).n).toBe(2);
  });

  test('a look that fails is made again by the next read', async () => {
    const { served, looks } = openServed();
    const found = [served.now(), served.now()];
    looks[0]?.fail();
    const failed = await Promise.allSettled(found);
    expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    const again = served.now();
    looks[1]?.respond(2);
    expect((await again).n).toBe(2);
  });
});
