/** ADR-0247: an intent names its provider, and no other provider gets a change of the payment. */
import { describe, expect, test } from '@jest/globals';
import { refused } from '../../shared/payment/decide.ts';
import { type PaymentState, providerOf } from '../../shared/payment/state.ts';
import { capture, create, NEW_OPERATION, record, refund, voidIt } from '../support/commands.ts';
import {
  authorized,
  captureDeclined,
  captured,
  captureRequested,
  created,
  operationId,
  refundRequested,
  SEALED,
  voidRequested,
} from '../support/payment-events.ts';
import { scenarios, stateAfter } from '../support/scenario.ts';

const A = 'http:a.example';
const B = 'stripe';
const FIRST = operationId(1);
const newly = { operationId: NEW_OPERATION };
const elsewhere = { kind: 'other provider', provider: A } as const;
const authorizedAtA = [created({ provider: A }), authorized()];
const capturedAtA = [
  ...authorizedAtA,
  captureRequested({ provider: A }),
  captured({ operationId: FIRST }),
];

describe('ADR-0247: an intent names the provider that it is sent to', () => {
  scenarios([
    {
      title: 'a create',
      given: [],
      when: create({ providers: [A, B] }),
      response: [created({ ...newly, provider: A })],
    },
    {
      title: 'a capture, a void and a refund: the capture',
      given: authorizedAtA,
      when: capture({ providers: [A] }),
      response: [captureRequested({ ...newly, provider: A })],
    },
    {
      title: 'the void',
      given: authorizedAtA,
      when: voidIt({ providers: [A] }),
      response: [voidRequested({ ...newly, provider: A })],
    },
    {
      title: 'the refund, with its reason',
      given: capturedAtA,
      when: refund({ providers: [A], reason: SEALED }),
      response: [refundRequested({ ...newly, provider: A, reason: SEALED })],
    },
    {
      title: 'an earlier name of the same provider is stored no more',
      given: authorizedAtA,
      when: capture({ providers: [B, A] }),
      response: [captureRequested({ ...newly, provider: B })],
    },
    {
      title: 'a payment from before the names goes to the provider that is set',
      given: [created(), authorized()],
      when: capture({ providers: [B] }),
      response: [captureRequested({ ...newly, provider: B })],
    },
  ]);
});

describe("ADR-0247: another provider than the payment's is sent nothing", () => {
  scenarios([
    ...[
      { given: authorizedAtA, when: capture({ providers: [B] }) },
      { given: authorizedAtA, when: voidIt({ providers: [B] }) },
      { given: capturedAtA, when: refund({ providers: [B] }) },
    ].map((of) => ({ title: `no ${of.when.kind}`, ...of, response: elsewhere })),
    {
      title: 'a decision that is only explained is about no provider',
      given: authorizedAtA,
      when: capture({ providers: [] }),
      response: [captureRequested(newly)],
    },
    {
      title: 'gaps §1: state and amounts come before it',
      given: capturedAtA,
      when: capture({ providers: [B] }),
      response: refused(
        'CAPTURE_NOT_ALLOWED',
        'only an AUTHORIZED payment can be captured; this one is CAPTURED',
      ),
    },
    {
      title: 'the outcome of what was sent there is recorded all the same',
      given: [...authorizedAtA, captureRequested({ provider: A })],
      when: record(FIRST),
      response: [captured({ operationId: FIRST })],
    },
  ]);

  const asState = (state: PaymentState | undefined): PaymentState => {
    if (state === undefined) throw new Error('no payment');
    return state;
  };
  const older = [created(), authorized(), captureRequested({ provider: A })];

  test('of a payment from before the names, an approved change says where it is', () => {
    const state = stateAfter([...older, captured({ operationId: FIRST })]);
    expect(providerOf(asState(state))).toBe(A);
  });

  test('an open or a declined one does not: it may have gone astray', () => {
    expect(providerOf(asState(stateAfter(older)))).toBeUndefined();
    expect(providerOf(asState(stateAfter([...older, captureDeclined()])))).toBeUndefined();
  });
});
