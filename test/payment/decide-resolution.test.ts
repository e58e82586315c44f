/** gaps §16: which events two operators' words and the provider's later outcome lead to. */
import { describe, expect, test } from '@jest/globals';
import type {
  FinalOutcomeDetails,
  ResolutionCommand,
  ResolveCommand,
} from '../../shared/payment/commands.ts';
import { APPROVAL_MS_MAX, decide } from '../../shared/payment/decide.ts';
import type { PaymentEvent } from '../../shared/payment/events.ts';
import { foldState } from '../../shared/payment/fold.ts';
import { minor } from '../../shared/payment/transitions.ts';
import {
  authenticationRequested,
  authorized,
  captured,
  captureRequested,
  created,
  failed,
  operationId,
  outcomeConfirmed,
  outcomeContradicted,
  placed,
  resolutionRequested,
  timeOf,
} from '../support/payment-events.ts';

const CREATE = operationId(0);
/** The request stands at revision 1. */
const REQUESTED_MS = Date.parse(timeOf(1));
const asRequested = [created(), resolutionRequested({ withoutFence: true })];

const OF_CAPTURE = { operationId: operationId(1) };
const asCapturing = [created(), authorized(), captureRequested()];

const resolve = (fields: Partial<ResolveCommand> = {}): ResolveCommand => ({
  kind: 'resolve',
  operationId: CREATE,
  outcome: 'DECLINED',
  evidence: 'call with the provider',
  withoutFence: true,
  actor: 'john',
  atMs: REQUESTED_MS + APPROVAL_MS_MAX,
  ...fields,
});
const confirm = (outcome: FinalOutcomeDetails): ResolutionCommand => ({
  kind: 'confirm',
  operationId: CREATE,
  ...outcome,
});
const decided = (given: PaymentEvent[], command: ResolutionCommand) => {
  const decision = decide(foldState(placed(given)), command);
  return decision.kind === 'events' ? decision.events : decision;
};

const resolution = {
  evidence: 'call with the provider',
  requestedBy: 'jane',
  requestEvidence: 'letter of the provider',
  withoutFence: true,
} as const;
const requestOf = (fields: object) => [
  resolutionRequested({
    requestedBy: 'john',
    evidence: 'call with the provider',
    withoutFence: true,
    ...fields,
  }),
];
const byHand = [created(), failed({ outcome: 'DECLINED', resolution })];
const approvedByHand = [
  created({ captureNow: true }),
  authorized({ resolution }),
  captured({ resolution }),
];
const contradicted = [...byHand, outcomeContradicted()];
const neverSent = [created(), failed({ outcome: 'NOT_SENT' })];

describe('one person requests, another one approves', () => {
  test.each<[string, PaymentEvent[], ResolveCommand, PaymentEvent[]]>([
    ['the first word is a request', [created()], resolve(), requestOf({})],
    [
      "another person's equal word within a day records the outcome, with both persons and texts",
      asRequested,
      resolve(),
      [
        {
          type: 'PaymentFailed',
          data: {
            operationId: CREATE,
            amount: minor(2500),
            currency: 'USD',
            failureCode: 'UNKNOWN_DECLINE',
            outcome: 'DECLINED',
            resolution,
          },
        },
      ],
    ],
    ['the same person again changes nothing', asRequested, resolve({ actor: 'jane' }), []],
    [
      'the same person with outer spaces and invisible characters is no other one',
      asRequested,
      resolve({ actor: ' ja\u200bne\u00a0' }),
      [],
    ],
    [
      "another person's other word takes the place of the request",
      asRequested,
      resolve({ outcome: 'APPROVED' }),
      requestOf({ outcome: 'APPROVED' }),
    ],
    ['a word about an open capture', asCapturing, resolve(OF_CAPTURE), requestOf(OF_CAPTURE)],
    [
      'a word with another fence is another word',
      [created(), resolutionRequested()],
      resolve(),
      requestOf({}),
    ],
    [
      'a request older than a day is replaced',
      asRequested,
      resolve({ atMs: REQUESTED_MS + APPROVAL_MS_MAX + 1 }),
      requestOf({}),
    ],
    ['what has its outcome keeps it', [created(), failed()], resolve(), []],
    ['what was resolved by hand keeps it', byHand, resolve(), []],
  ])('%s', (_title, given, command, events) => {
    expect(decided(given, command)).toEqual(events);
  });

  test('an approved sale: both of its events name both persons', () => {
    const sale = [
      created({ captureNow: true }),
      resolutionRequested({ outcome: 'APPROVED', withoutFence: true }),
    ];
    expect(decided(sale, resolve({ outcome: 'APPROVED' }))).toEqual([
      authorized({ resolution }),
      captured({ resolution }),
    ]);
  });

  test('a word for an operation that was never begun is a bug of the code that calls', () => {
    expect(() => decided([created()], resolve(OF_CAPTURE))).toThrow('was never begun');
  });
});

describe('what the provider says later is noted, and nothing is rewritten', () => {
  const approved = { outcome: 'APPROVED', providerReference: 'ref' } as const;
  const declined = { outcome: 'DECLINED', failureCode: 'CARD_DECLINED' } as const;
  test.each<[string, PaymentEvent[], FinalOutcomeDetails, PaymentEvent[]]>([
    ['declined by hand, and fenced', byHand, { outcome: 'FENCED' }, [outcomeConfirmed()]],
    ['declined by hand, and never sent', byHand, { outcome: 'NOT_SENT' }, [outcomeConfirmed()]],
    [
      'declined by hand, and declined',
      byHand,
      declined,
      [outcomeConfirmed({ outcome: 'DECLINED' })],
    ],
    [
      'declined by hand, and approved',
      byHand,
      approved,
      [outcomeContradicted({ providerReference: 'ref' })],
    ],
    ['approved by hand, and approved', approvedByHand, approved, [outcomeConfirmed(approved)]],
    [
      'approved by hand, and declined',
      approvedByHand,
      declined,
      [outcomeContradicted({ outcome: 'DECLINED' })],
    ],
    [
      'approved by hand, and fenced',
      approvedByHand,
      { outcome: 'FENCED' },
      [outcomeContradicted({ outcome: 'FENCED' })],
    ],
    ['contradicted before, and still', contradicted, approved, []],
    [
      'contradicted before, and corrected',
      contradicted,
      declined,
      [outcomeConfirmed({ outcome: 'DECLINED' })],
    ],
    ["the provider's own decline", [created(), failed()], approved, []],
    [
      'recorded as never sent, and approved',
      neverSent,
      approved,
      [outcomeContradicted({ providerReference: 'ref' })],
    ],
    [
      'recorded as fenced, and approved',
      [created(), failed({ outcome: 'FENCED' })],
      approved,
      [outcomeContradicted({ providerReference: 'ref' })],
    ],
    [
      'gaps §21: fenced when the time of the shopper was over, and approved',
      [created(), authenticationRequested(), failed({ outcome: 'FENCED' })],
      approved,
      [outcomeContradicted({ providerReference: 'ref' })],
    ],
    ['recorded as never sent, and fenced', neverSent, { outcome: 'FENCED' }, []],
    [
      'never sent, and ended by two operators',
      [...neverSent, outcomeContradicted(), outcomeConfirmed({ resolution })],
      approved,
      [],
    ],
    [
      'never sent, contradicted, corrected by the provider, and approved again',
      [...neverSent, outcomeContradicted(), outcomeConfirmed()],
      approved,
      [outcomeContradicted({ providerReference: 'ref' })],
    ],
    ['confirmed already', [...byHand, outcomeConfirmed()], approved, []],
    ['without any outcome', [created()], approved, []],
  ])('%s', (_title, given, outcome, events) => {
    expect(decided(given, confirm(outcome))).toEqual(events);
  });

  test('two persons end a contradiction: the outcome that stands is confirmed with both texts', () => {
    const { withoutFence: _, ...both } = resolution;
    const word = { withoutFence: false } as const;
    expect(decided(contradicted, resolve(word))).toEqual([
      resolutionRequested({ evidence: 'call with the provider', requestedBy: 'john' }),
    ]);
    expect(decided([...contradicted, resolutionRequested()], resolve(word))).toEqual([
      outcomeConfirmed({ outcome: 'DECLINED', resolution: both }),
    ]);
  });
});
