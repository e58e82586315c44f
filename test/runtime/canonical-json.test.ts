/** Events are hashed as canonical JSON: were one byte written otherwise, no chain would verify. */
import { describe, expect, test } from '@jest/globals';
import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { canonicalJson } from '../../shared/event-store/codec.ts';
import { anyCharacter } from '../support/any-character.ts';
import { propertyRuns } from '../support/property-runs.ts';

describe('RFC 8785: canonical JSON', () => {
  test.each([
    // RFC 8785, 3.2.2 and 3.2.3.
    [
      '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}',
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    ],
    [
      '{"\\u20ac":"Euro Sign","\\r":"Carriage Return","\\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\\ud83d\\ude00":"Emoji: Grinning Face","\\u0080":"Control","\\u00f6":"Latin Small Letter O With Diaeresis"}',
      '{"\\r":"Carriage Return","1":"One","\u0080":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","😀":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
    ],
    // RFC 8785, appendix B.
    ['[-0,5e-324,-5e-324,1.7976931348623157e308]', '[0,5e-324,-5e-324,1.7976931348623157e+308]'],
    ['[9007199254740992,295147905179352830000]', '[9007199254740992,295147905179352830000]'],
    [
      '[9.999999999999997e22,1e23,1e21,1e20]',
      '[9.999999999999997e+22,1e+23,1e+21,100000000000000000000]',
    ],
    ['[0.000001,1e-7,333333333.33333325]', '[0.000001,1e-7,333333333.33333325]'],
  ])('%s', (text, canonical) => {
    expect(canonicalJson(JSON.parse(text))).toBe(canonical);
  });

  test("is what the library of the RFC's author writes, for any JSON", () => {
    const anyJson = fc.jsonValue({ maxDepth: 6, stringUnit: anyCharacter });
    fc.assert(
      fc.property(anyJson, (value) => {
        expect(canonicalJson(value)).toBe(canonicalize(value));
      }),
      { numRuns: propertyRuns(2000) },
    );
  });

  test.each([
    ['half a surrogate pair', ['a\ud800']],
    ['half a surrogate pair behind a backslash', ['\\\udfff']],
    ['half a surrogate pair in a name', { '\udc00': 1 }],
    ['NaN', [Number.NaN]],
    ['infinity', [Number.POSITIVE_INFINITY]],
  ])('%s has no canonical JSON', (_, value) => {
    expect(() => canonicalize(value)).toThrow();
    expect(() => canonicalJson(value)).toThrow();
  });

  test.each(['\\ud800', '\\\\udfff', 'a\\\\\\ud83d', '😀'])(
    'the text %s has canonical JSON',
    (value) => {
      expect(canonicalJson([value])).toBe(canonicalize([value]));
    },
  );

  test('a value that is nested too deep is cut, and is no error', () => {
    const nested = (depth: number): unknown =>
      Array.from({ length: depth }).reduce<unknown>((inner) => [inner], 0);
    expect(canonicalJson(nested(900))).toBe(canonicalize(nested(900)));
    expect(canonicalJson(nested(100_000))).toContain('[Array]');
  });
});
