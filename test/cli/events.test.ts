/** The timeline says why an event is as it is, and whose word it is. */
import { expect, test } from '@jest/globals';
import type { AuditEvent } from '../../audit/contract.ts';
import { whyOf } from '../../audit/event-words.ts';
import { timelineLines } from '../../cli/events.ts';
import type { PaymentEventType } from '../../shared/payment/events.ts';

const eventOf = (data: AuditEvent['data'], type = 'PaymentFailed'): AuditEvent => ({
  why: whyOf({ type, data }),
  position: '4',
  stream: 'payment-pay_1',
  revision: 3,
  type,
  time: '2026-03-03T12:00:00.000Z',
  actor: 'ann@example.com',
  requestId: '01M81JPBJSENXRNT9CJC01XSPK',
  correlationId: 'c',
  causationId: 'c',
  id: 'i',
  schemaVersion: 1,
  hash: '0'.repeat(64),
  previousHash: '0'.repeat(64),
  data,
});

const PLACE = '2026-03-03 12:00:00.000  r3  #4  PaymentFailed      ann@example.com  ..JC01XSPK';

test.each<[string, AuditEvent['data'], string]>([
  ['nothing more', {}, ''],
  ['a decline', { failureCode: 'CARD_DECLINED', outcome: 'DECLINED' }, '  CARD_DECLINED'],
  [
    "the provider's own code",
    { failureCode: 'DO_NOT_HONOR', providerFailureCode: '05', outcome: 'DECLINED' },
    '  DO_NOT_HONOR (05)',
  ],
  [
    'an operation that never moved money',
    { failureCode: 'PROVIDER_UNAVAILABLE', outcome: 'FENCED' },
    '  PROVIDER_UNAVAILABLE; never carried out: FENCED',
  ],
  ['the reason of a refund', { reason: 'damaged' }, '  reason: damaged'],
  [
    'the word of a person',
    {
      failureCode: 'CARD_DECLINED',
      outcome: 'DECLINED',
      resolution: { evidence: 'portal', requestedBy: 'bob', requestEvidence: 'telephone' },
    },
    '  CARD_DECLINED; by hand: "portal", requested by bob: "telephone"',
  ],
  [
    'the request of a person, which decides nothing yet',
    { outcome: 'APPROVED', evidence: 'telephone', requestedBy: 'bob' },
    '  by hand: APPROVED, "telephone"',
  ],
  ['what the provider says later', { outcome: 'APPROVED' }, '  the provider says APPROVED'],
])('the timeline shows %s', (_what, data, why) => {
  const [line] = timelineLines([eventOf(data)]);
  expect(line).toBe(`${PLACE}${why}`);
});

test.each<[PaymentEventType, AuditEvent['data'], string]>([
  [
    'PaymentAuthenticationRequested',
    { expiresAt: '2026-01-15T10:15:00.000Z' },
    'the provider waits for the shopper until 2026-01-15T10:15:00.000Z; no money has moved',
  ],
  [
    'PaymentAuthorizationExpiring',
    { expiresAt: '2026-01-22T10:00:00.000Z' },
    'the authorization ends 2026-01-22T10:00:00.000Z; no money has moved',
  ],
  ['PaymentCaptureObserved', { providerReference: 'pi_1' }, 'captured elsewhere, on pi_1 at the'],
  ['PaymentVoidObserved', { providerReference: 'pi_1' }, 'canceled elsewhere, on pi_1 at the'],
])('what the provider says later has its words: %s', (type, data, words) => {
  expect(timelineLines([eventOf(data, type)])[0]).toContain(`  ${words}`);
});
