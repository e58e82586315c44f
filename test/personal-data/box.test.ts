/** A box opens to the group that was sealed, by its key and in its place alone. */
import { createSecretKey } from 'node:crypto';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type BoxPlace,
  BoxRefused,
  newKeyBytes,
  openBox,
  type SealedBox,
  sealBox,
} from '../../personal-data/box.ts';
import { newPersonalKey } from '../support/personal-data.ts';
import { propertyRuns } from '../support/property-runs.ts';

const place: BoxPlace = { stream: 'payment-pay_1', eventType: 'PaymentCreated', field: 'personal' };
const group = { holderName: 'Ada Lovelace', itemNames: ['tea'] };

const text = fc.string({ unit: 'binary' }).map((one) => one.toWellFormed());
const groups = fc.dictionary(text, fc.oneof(text, fc.array(text), fc.dictionary(text, text)), {
  noNullPrototype: true,
});
const places = fc.record({ stream: text, eventType: text, field: text });

const refusalOf = (open: () => unknown): unknown => {
  try {
    return open();
  } catch (error) {
    expect(error).toBeInstanceOf(BoxRefused);
    expect(String(error)).not.toContain('Ada');
    return (error as BoxRefused).code;
  }
};

test('a box opens to the group that was sealed, and is another one each time', () => {
  fc.assert(
    fc.property(groups, places, (sealed, at) => {
      const own = newPersonalKey();
      const boxes = [sealBox(own, at, sealed), sealBox(own, at, sealed)];
      for (const box of boxes) expect(openBox(own.key, at, box)).toEqual(sealed);
      expect(boxes[0]?.box).not.toBe(boxes[1]?.box);
    }),
    { numRuns: propertyRuns(300) },
  );
});

test.each(['stream', 'eventType', 'field'] as const)('a box in another %s is refused', (part) => {
  const own = newPersonalKey();
  const sealed = sealBox(own, place, group);
  const elsewhere = { ...place, [part]: `${place[part]}2` };
  expect(refusalOf(() => openBox(own.key, elsewhere, sealed))).toBe('BOX_MISMATCH');
});

test('no two places are authenticated by the same text', () => {
  const own = newPersonalKey();
  const sealed = sealBox(own, { stream: 'a', eventType: 'b","c', field: 'd' }, group);
  const alike = { stream: 'a","b', eventType: 'c', field: 'd' };
  expect(refusalOf(() => openBox(own.key, alike, sealed))).toBe('BOX_MISMATCH');
});

test('another key than the one that the event names is refused, also where the box is its own', () => {
  const [own, foreign] = [newPersonalKey(), newPersonalKey()];
  const sealed = sealBox(own, place, group);
  const byForeign: SealedBox = { ...sealBox(foreign, place, group), key: own.id };
  expect(refusalOf(() => openBox(foreign.key, place, sealed))).toBe('FOREIGN_KEY');
  expect(refusalOf(() => openBox(foreign.key, place, byForeign))).toBe('FOREIGN_KEY');
  expect(refusalOf(() => openBox(own.key, place, byForeign))).toBe('BOX_MISMATCH');
});

test('a changed, cut or empty box is refused', () => {
  const own = newPersonalKey();
  const { box, key } = sealBox(own, place, group);
  const bytes = Buffer.from(box, 'base64url');
  const changed = [...bytes].map((byte, at) => bytes.with(at, byte ^ 1));
  const cut = [0, 5, 12, 20, 28, bytes.length - 1].map((length) => bytes.subarray(0, length));
  for (const other of [...changed, ...cut]) {
    const sealed = { box: Buffer.from(other).toString('base64url'), key };
    expect(refusalOf(() => openBox(own.key, place, sealed))).toBe('BOX_MISMATCH');
  }
});

test('the length of a box tells of a text only how many times 128 bytes it takes', () => {
  const lengthFor = (letters: number): number =>
    Buffer.from(sealBox(newPersonalKey(), place, { a: 'é'.repeat(letters) }).box, 'base64url')
      .length;
  expect([0, 1, 60, 61, 124, 125].map(lengthFor)).toEqual([156, 156, 156, 284, 284, 412]);
});

/** Made once: boxes of this form stand in logs. */
const STORED = {
  key: 'VYrZ9KS-dKnq0oWNfLgvgeXD-Qju6tAc',
  box: [
    'Ph6xqQ1j99G2Xnd_IUa9Z4BKAxm8DqjFJz_Y_W_zepKtke2i31gQwMI57z6fG8bYE6aXxpkg3lZ69zpE',
    '5pvF77qaFt0z2Gp7AYZ28nN9B0_1FRAfOFht6Qik3ehYei2CI9kuoRJJOLVJGL8GxsSnJidYNaRtq0Gs',
    'N2Cgs2Jtet-Il5MzHjdBQ2vgNekWcYc4i8SSGTNndtWAXymX',
  ].join(''),
};

test('a box that was sealed once opens for ever', () => {
  const key = createSecretKey(Buffer.alloc(32, 7));
  expect(openBox(key, place, STORED)).toEqual(group);
  expect(sealBox({ id: STORED.key, key }, place, group).box).toHaveLength(STORED.box.length);
});

test('of two keys the later one comes first in the order of ids', () => {
  const times = ['2026-11-30T10:00:00Z', '2026-11-30T10:00:01Z', '2090-01-01T00:00:00Z'];
  const ids = times.map((time) => newKeyBytes(Date.parse(time)).id);
  expect(ids.toSorted()).toEqual(ids.toReversed());
  expect(ids.map(({ length }) => length)).toEqual([40, 40, 40]);
});
