/** docs/privacy.md gives each field of a payment a side: sealed, or in the clear with its reason. */
import { expect, test } from '@jest/globals';
import { personalGroup, sealedForms } from '../../shared/payment/fields.ts';
import { textOf } from '../support/project-files.ts';

const rows = [...textOf('docs/privacy.md').matchAll(/^\| (`.*`) \| (yes|no) \| .+ \|$/gm)];
const fieldsOf = (side: string): string[] =>
  rows
    .filter(([, , given]) => given === side)
    .flatMap(([, fields = '']) => [...fields.matchAll(/`(\w+)`/g)].map(([, name = '']) => name))
    .sort();

test('each field of a box, and the reason of a change, is named as sealed', () => {
  expect(fieldsOf('yes')).toEqual([...Object.keys(personalGroup.shape), 'reason'].sort());
});

test('each field that stays in the clear is named with why', () => {
  const { card, details } = sealedForms;
  const open = [...Object.keys(card.shape), ...Object.keys(details.shape)];
  expect(fieldsOf('no')).toEqual(open.sort());
});

test('nothing is called anonymous that is not', () => {
  for (const page of ['docs/privacy.md', 'README.md']) expect(textOf(page)).not.toMatch(/anonym/i);
});
