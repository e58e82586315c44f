/** What a look-up finds and a fence ends (gaps §7). */
import { describe, expect, test } from '@jest/globals';
import type { LoggedProvider } from '../support/logged-provider.ts';
import { timesOf } from '../support/long-run-share.ts';
import { authorize, followUp } from '../support/provider-operations.ts';
import {
  approved,
  declined,
  notSent,
  onlySimulated,
  openBeforeEach,
  type ProviderDriver,
  takeAll,
} from './opened.ts';

export const fencingCases = (driver: ProviderDriver): void => {
  describe('gaps §7: asking and fencing', () => {
    let provider: LoggedProvider;
    const { reopen, authorized } = openBeforeEach(driver, (opened) => {
      provider = opened;
    });

    test('a look-up finds approvals, declines and nothing', async () => {
      const yes = await authorized();
      const no = authorize('4000000000000002');
      await provider.execute(no);
      expect(await provider.lookUp(yes)).toMatchObject(approved);
      expect(await provider.lookUp(no)).toMatchObject(declined('CARD_DECLINED'));
      expect(await provider.lookUp(authorize())).toEqual({ outcome: 'NOT_FOUND' });
    });

    const KINDS = ['AUTHORIZE', 'SALE', 'CAPTURE', 'VOID', 'REFUND'] as const;
    const operationOf = async (kind: (typeof KINDS)[number]) =>
      kind === 'AUTHORIZE' || kind === 'SALE'
        ? authorize(undefined, { kind })
        : followUp(
            kind,
            await authorized(undefined, { kind: kind === 'REFUND' ? 'SALE' : 'AUTHORIZE' }),
          );

    test.each(KINDS)(
      'a fence before a %s: the call is NotSent, also after a restart',
      async (kind) => {
        const operation = await operationOf(kind);
        const before = await takeAll(provider, 10);
        expect(await provider.fence(operation)).toEqual({ outcome: 'FENCED' });
        expect(await provider.fence(operation)).toEqual({ outcome: 'FENCED' });
        provider = await reopen();
        expect(await provider.execute(operation)).toMatchObject(notSent);
        expect(await provider.lookUp(operation)).toEqual({ outcome: 'NOT_FOUND' });
        expect(await takeAll(provider, 10)).toEqual(before);
      },
    );

    onlySimulated(driver, () => {
      test.each(['4000000000004228', '4000000000004269', '4000000000004236'])(
        'a fence holds against %s too',
        async (number) => {
          const operation = authorize(number);
          await provider.fence(operation);
          expect(await provider.execute(operation)).toEqual({
            outcome: 'NOT_SENT',
            byProvider: true,
            reason: 'fenced',
          });
          expect(await takeAll(provider, 10)).toEqual([]);
        },
      );
    });

    test('a fence after the call gives its outcome', async () => {
      const yes = await authorized();
      const no = authorize('4000000000000002');
      await provider.execute(no);
      expect(await provider.fence(yes)).toMatchObject(approved);
      expect(await provider.fence(no)).toMatchObject(declined('CARD_DECLINED'));
      expect(await provider.execute(followUp('CAPTURE', yes))).toMatchObject(approved);
    });

    test.each(KINDS)('a %s and its fence at once: both give the same outcome', async (kind) => {
      for (let round = 0; round < timesOf(100, 10); round += 1) {
        const operation = await operationOf(kind);
        const [response, fence] = await Promise.all([
          provider.execute(operation),
          provider.fence(operation),
        ]);
        // One that met the call at its work is asked about again, as recovery does.
        const known = fence.outcome === 'UNKNOWN' ? await provider.fence(operation) : fence;
        const both = `${response.outcome} ${known.outcome}`;
        expect(['APPROVED APPROVED', 'NOT_SENT FENCED']).toContain(both);
      }
    });
  });
};
