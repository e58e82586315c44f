/**
 * The golden folder holds what the service stored and said before its code was cut. Whatever the code is
 * now: it opens the same folder, and says the same to the byte.
 */
import { describe, expect, test } from '@jest/globals';
import { testOfLongRun } from '../support/long-run-share.ts';
import { type Captured, captureAll, captureParked } from './captures.ts';
import { comparableText } from './differences.ts';
import { type Kept, manyAsNow, readKept } from './kept.ts';

/** An endpoint of the folder has an address that only Linux lets a test listen at. */
const onLinux = process.platform === 'linux' ? test : test.skip;

/** The texts, without what differs on purpose. */
const comparable = (texts: Captured): Captured =>
  new Map([...texts].map(([name, text]) => [name, comparableText(name, text)]));

const groupOf = (name: string): string => name.split('/')[0] ?? name;

const AROUND = 80;

/** Where two texts part, with what stands around it. */
const parting = (kept: string, found = ''): string => {
  let at = 0;
  while (at < kept.length && kept[at] === found[at]) at += 1;
  const shown = (text: string): string =>
    JSON.stringify(text.slice(Math.max(0, at - AROUND), at + AROUND));
  return `at ${at}\nkept  ${shown(kept)}\nfound ${shown(found)}`;
};

/** Throws where a text is another one than was kept; names each, and shows where the first one parts. */
const expectSame = (kept: Captured, found: Captured): void => {
  expect([...found.keys()].sort()).toEqual([...kept.keys()].sort());
  const now = comparable(found);
  const others = [...comparable(kept)].filter(([name, text]) => now.get(name) !== text);
  const [first] = others;
  if (first === undefined) return;
  const names = others.map(([name]) => name).join(', ');
  throw new Error(`other than kept: ${names}\n${first[0]} ${parting(first[1], now.get(first[0]))}`);
};

const isOfParked = (name: string): boolean => name.startsWith('parked/');
const of = ({ texts }: Kept, isWanted: (name: string) => boolean): Captured =>
  new Map([...texts].filter(([name]) => isWanted(name)));

describe('the golden folder', () => {
  onLinux(
    'says to the byte what it said: bodies, states, repeats, topics, export, webhooks',
    async () => {
      const kept = readKept();
      expectSame(
        of(kept, (name) => !isOfParked(name)),
        await captureAll(kept.story),
      );
    },
  );

  test('a payment that cannot be read is told of as it was', async () => {
    const kept = readKept();
    expectSame(of(kept, isOfParked), await captureParked(kept.parked));
  });

  testOfLongRun(
    'a log of 20,000 payments has the hashes, the export and the read models that it had',
    async () => expectSame(readKept().many, await manyAsNow()),
  );

  test('one other byte in any kind of text is noticed', () => {
    const { texts } = readKept();
    const first = new Map([...texts].reverse().map(([name]) => [groupOf(name), name]));
    for (const name of first.values()) {
      const text = texts.get(name) as string;
      const at = text.length >> 1;
      const changed = text.slice(0, at) + (text[at] === 'x' ? 'y' : 'x') + text.slice(at + 1);
      expect(() => expectSame(new Map([[name, text]]), new Map([[name, changed]]))).toThrow(name);
    }
    expect(first.size).toBeGreaterThan(8);
  });
});
