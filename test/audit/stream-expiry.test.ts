/** A live stream ends with its token, and its client goes on with another one (docs/audit.md). */
import { expect, test } from '@jest/globals';
import { type InProcess, openInProcess, signToken } from '../support/service-in-process.ts';
import { AWAITED_MS } from '../support/time-bounds.ts';

const STREAM = '/audit/v1/events/stream';

const tokenOf = (seconds: number): Promise<string> => {
  const exp = Math.floor(Date.now() / 1000) + seconds;
  return signToken({ merchant_id: '*', scope: 'audit:read', exp });
};

/** The whole text of a stream by a token that is good for some seconds more. */
const streamed = async (service: InProcess, headers: Record<string, string> = {}) => {
  const token = await tokenOf((2 * AWAITED_MS) / 1_000);
  const { text } = await service.ask('GET', STREAM, undefined, {
    token,
    headers: { accept: 'text/event-stream', ...headers },
  });
  return text;
};
const idsOf = (text: string) => [...text.matchAll(/^id: (.+)$/gm)].map(([, id]) => Number(id));

test('a live stream ends with its token, says so, and goes on behind the last event with another token', async () => {
  await using service = await openInProcess();
  await service.create();
  const first = await streamed(service);
  expect(first).toContain('event: PaymentCreated');
  expect(first).toMatch(/event: token-expired\ndata: \{\}\n\n$/);

  const last = idsOf(first).at(-1) ?? 0;
  await service.create();
  const second = await streamed(service, { 'last-event-id': String(last).padStart(12, '0') });
  expect(idsOf(second)[0]).toBe(last + 1);
  expect(second.match(/event: PaymentCreated/g)).toHaveLength(1);
});
