/** A stream that the rules could not have written is damaged, and is not read on (M8, L5). */
import { describe, expect, test } from '@jest/globals';
import type { LaterCommand } from '../../shared/payment/commands.ts';
import { decideLater } from '../../shared/payment/decide-later.ts';
import type { PaymentEvent } from '../../shared/payment/payment-events.ts';
import { authorizationOf } from '../../shared/payment/payment-state.ts';
import {
  authorized,
  captured,
  captureRequested,
  created,
  failed,
  operationId,
  refunded,
  refundFailed,
  refundRequested,
  voided,
  voidRequested,
} from '../support/payment-events.ts';
import { stateAfter } from '../support/scenario.ts';

const FIRST = operationId(1);
const asAuthorized = [created(), authorized()];
const asCaptured = [...asAuthorized, captureRequested(), captured({ operationId: FIRST })];
const asVoided = [...asAuthorized, voidRequested(), voided()];
const asRefunded = [...asCaptured, refundRequested(), refunded()];

describe('evolve throws where an event cannot follow', () => {
  test.each<[string, PaymentEvent[], string]>([
    ['no PaymentCreated', [authorized()], 'the stream has no PaymentCreated'],
    [
      'a second PaymentCreated',
      [created(), created()],
      'PaymentCreated is not the first event of its stream',
    ],
    [
      'an outcome without its intent',
      [...asAuthorized, voided()],
      'PaymentVoided without an unresolved intent',
    ],
    [
      'M8: authorized after it failed',
      [created(), failed(), authorized()],
      'PaymentAuthorized cannot follow status FAILED',
    ],
    [
      'M8: failed after it was authorized',
      [...asAuthorized, failed()],
      'PaymentFailed cannot follow status AUTHORIZED',
    ],
    [
      'M8: captured after it was voided',
      [...asVoided, captured({ operationId: FIRST })],
      'PaymentCaptured cannot follow status VOIDED',
    ],
    [
      'M3: voided after it was captured',
      [...asCaptured, voided()],
      'PaymentVoided cannot follow status CAPTURED',
    ],
    [
      'captured a second time',
      [...asCaptured, captured({ operationId: FIRST })],
      'PaymentCaptured cannot follow status CAPTURED',
    ],
    [
      'refunded before it was captured',
      [...asAuthorized, refunded()],
      'PaymentRefunded cannot follow status AUTHORIZED',
    ],
    [
      'M8: refunded once more',
      [...asRefunded, refunded()],
      'PaymentRefunded cannot follow status REFUNDED',
    ],
  ])('%s', (_title, events, message) => {
    expect(() => stateAfter(events)).toThrow(message);
    expect(() => stateAfter(events.slice(0, -1))).not.toThrow();
  });
});

test('provider.md: later operations name the authorization by the operation id of the create', () => {
  const state = stateAfter(asCaptured);
  if (state === undefined) throw new Error('the payment is there');
  expect(authorizationOf(state)).toEqual({ authorizationId: operationId(0) });
});

test('a refund that failed later is known by its whole operation id, of which a transaction shows a part', () => {
  const state = stateAfter(asRefunded);
  if (state === undefined) throw new Error('the payment is there');
  const failedLater = (id: string): LaterCommand => ({
    kind: 'later',
    operationId: operationId(9),
    result: { kind: 'REFUND_FAILED', operationId: id, failureCode: 'PROCESSING_ERROR' },
  });
  const other = `other_${operationId(2)}`;
  expect(decideLater(state, failedLater(operationId(2)))).toHaveLength(1);
  expect(decideLater(state, failedLater(other))).toEqual([]);
  expect(() => stateAfter([...asRefunded, refundFailed({ operationId: other })])).toThrow(
    new Error('PaymentRefundFailed does not fit its payment'),
  );
});
