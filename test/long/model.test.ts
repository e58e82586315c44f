/** Model checking at its full size: thousands of sequences, with restarts and a projector that stands still. */
import { expect, test } from '@jest/globals';
import { LATER_KINDS } from '../model/commands.ts';
import { agreeWithModel } from '../model/run.ts';

test('M1-M8: amounts and statuses after thousands of sequences are those of plain arithmetic', async () => {
  const fast = await agreeWithModel({ sequences: 3000, commands: 25, slow: false });
  const slow = await agreeWithModel({ sequences: 150, commands: 40, slow: true });
  process.stderr.write('model: 3150 sequences, 0 divergences\n');
  for (const status of [
    'AUTHORIZED',
    'CAPTURED',
    'VOIDED',
    'REFUNDED',
    'FAILED',
    'PENDING',
    'PENDING unresolved',
  ]) {
    for (const kind of ['capture', 'void', 'refund']) {
      expect([...fast, ...slow]).toContain(`${status} x ${kind}`);
    }
  }
  for (const met of ['refund after a bounce', 'come to authenticate', 'come to fail'])
    expect([...fast, ...slow]).toContain(met);
  for (const kind of LATER_KINDS) expect([...fast, ...slow]).toContain(`later ${kind}`);
}, 900_000);
