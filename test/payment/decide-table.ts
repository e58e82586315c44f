/**
 * The whole of `decide`: one row for every state a payment can be in, the operations that are open
 * included, and in it one cell for every kind of command. The types make a missing row or cell an
 * error; decide.test.ts reads every cell, and agreement.test.ts shows that no payment ever gets to
 * a state without a row.
 */
import type { Command } from '../../shared/payment/commands.ts';
import { type Refused, refused, type UnresolvedDecision } from '../../shared/payment/decide.ts';
import type { PaymentEvent } from '../../shared/payment/events.ts';
import { type PaymentState, unresolvedOperations } from '../../shared/payment/state.ts';
import { minor, type OperationKind } from '../../shared/payment/transitions.ts';
import {
  authenticate,
  capture,
  create,
  identity,
  NEW_OPERATION,
  open,
  record,
  refund,
  voidIt,
} from '../support/commands.ts';
import {
  authenticationRequested,
  authorized,
  captured,
  captureRequested,
  created,
  failed,
  operationId,
  providerOpened,
  refunded,
  refundRequested,
  voided,
  voidRequested,
} from '../support/payment-events.ts';
import type { CommandResponse } from '../support/scenario.ts';

export const SUB_STATES = [
  'no payment',
  'PENDING, create open',
  'PENDING, create waiting',
  'FAILED',
  'AUTHORIZED',
  'AUTHORIZED, capture open',
  'AUTHORIZED, void open',
  'CAPTURED',
  'CAPTURED, refund open',
  'REFUNDED',
  'VOIDED',
] as const;
type SubState = (typeof SUB_STATES)[number];

/** Where a state belongs in the table; several open refunds are as one. */
export const subStateOf = (state: PaymentState | undefined): string => {
  const open = new Set(
    unresolvedOperations(state).map(
      ({ kind, waitsUntil }) => `${kind} ${waitsUntil === undefined ? 'open' : 'waiting'}`,
    ),
  );
  return [state?.status ?? 'no payment', ...[...open].sort()].join(', ');
};

const CREATE = operationId(0);
const FIRST = operationId(1);

/** The rules of the others stand in decide-later, decide-resolution and decide-erasure.test.ts. */
export type Kind = Exclude<Command['kind'], 'later' | 'resolve' | 'confirm' | 'erase' | 'hold'>;

const lastOf = (given: PaymentEvent[]): string =>
  Object(given.at(-1)?.data).operationId ?? NEW_OPERATION;

/** The command of each cell; what is recorded is the approval of the payment's last operation. */
export const COMMANDS: Record<Kind, (given: PaymentEvent[]) => Command> = {
  create: () => create(),
  capture: () => capture(),
  void: () => voidIt(),
  refund: () => refund(),
  open: (given) => open(lastOf(given)),
  authenticate: (given) => authenticate(lastOf(given)),
  record: (given) => record(lastOf(given)),
};

const exists = { kind: 'exists' } as const;
const known: CommandResponse = [];
const unknownPayment = (kind: Command['kind']): CommandResponse => ({
  throws: `${kind} on a payment that does not exist`,
});

const unresolved = (
  kind: OperationKind,
  operation: string,
  requestedAt: number,
): UnresolvedDecision => ({
  kind: 'unresolved',
  operation: { kind, operationId: operation, amount: minor(2500), identity, requestedAt },
});

const opensNothing = (kind: OperationKind): CommandResponse => ({
  throws: `PaymentProviderOpened of a ${kind}`,
});

const needsNoShopper = (kind: OperationKind): CommandResponse => ({
  throws: `PaymentAuthenticationRequested of a ${kind}`,
});

const noCapture = (status: string): Refused =>
  refused(
    'CAPTURE_NOT_ALLOWED',
    `only an AUTHORIZED payment can be captured; this one is ${status}`,
  );
const noVoid = (status: string): Refused =>
  refused('VOID_NOT_ALLOWED', `only an AUTHORIZED payment can be voided; this one is ${status}`);
const noRefund = (why: string): Refused => refused('REFUND_NOT_ALLOWED', why);
const notCaptured = (status: string): Refused =>
  noRefund(`only a CAPTURED payment can be refunded; this one is ${status}`);

const asAuthorized = [created(), authorized()];
const asCaptured = [...asAuthorized, captureRequested(), captured({ operationId: FIRST })];

type Row = { given: PaymentEvent[]; responses: Record<Kind, CommandResponse> };

export const TABLE: Record<SubState, Row> = {
  'no payment': {
    given: [],
    responses: {
      create: [created({ operationId: NEW_OPERATION })],
      capture: unknownPayment('capture'),
      void: unknownPayment('void'),
      refund: unknownPayment('refund'),
      open: unknownPayment('open'),
      authenticate: unknownPayment('authenticate'),
      record: unknownPayment('record'),
    },
  },
  'PENDING, create open': {
    given: [created()],
    responses: {
      create: exists,
      capture: unresolved('create', CREATE, 0),
      void: unresolved('create', CREATE, 0),
      refund: unresolved('create', CREATE, 0),
      open: [providerOpened()],
      authenticate: [authenticationRequested()],
      record: [authorized()],
    },
  },
  'PENDING, create waiting': {
    given: [created(), authenticationRequested()],
    responses: {
      create: exists,
      capture: noCapture('PENDING'),
      void: noVoid('PENDING'),
      refund: notCaptured('PENDING'),
      open: [providerOpened()],
      authenticate: known,
      record: [authorized()],
    },
  },
  FAILED: {
    given: [created(), failed()],
    responses: {
      create: exists,
      capture: noCapture('FAILED'),
      void: noVoid('FAILED'),
      refund: notCaptured('FAILED'),
      open: known,
      authenticate: known,
      record: known,
    },
  },
  AUTHORIZED: {
    given: asAuthorized,
    responses: {
      create: exists,
      capture: [captureRequested({ operationId: NEW_OPERATION })],
      void: [voidRequested({ operationId: NEW_OPERATION })],
      refund: notCaptured('AUTHORIZED'),
      open: known,
      authenticate: known,
      record: known,
    },
  },
  'AUTHORIZED, capture open': {
    given: [...asAuthorized, captureRequested()],
    responses: {
      create: exists,
      capture: unresolved('capture', FIRST, 2),
      void: unresolved('capture', FIRST, 2),
      refund: unresolved('capture', FIRST, 2),
      open: opensNothing('capture'),
      authenticate: needsNoShopper('capture'),
      record: [captured({ operationId: FIRST })],
    },
  },
  'AUTHORIZED, void open': {
    given: [...asAuthorized, voidRequested()],
    responses: {
      create: exists,
      capture: unresolved('void', FIRST, 2),
      void: unresolved('void', FIRST, 2),
      refund: unresolved('void', FIRST, 2),
      open: opensNothing('void'),
      authenticate: needsNoShopper('void'),
      record: [voided()],
    },
  },
  CAPTURED: {
    given: asCaptured,
    responses: {
      create: exists,
      capture: noCapture('CAPTURED'),
      void: noVoid('CAPTURED'),
      refund: [refundRequested({ operationId: NEW_OPERATION })],
      open: opensNothing('capture'),
      authenticate: needsNoShopper('capture'),
      record: known,
    },
  },
  'CAPTURED, refund open': {
    given: [...asCaptured, refundRequested({ amount: 800 })],
    responses: {
      create: exists,
      capture: noCapture('CAPTURED'),
      void: noVoid('CAPTURED'),
      refund: [refundRequested({ operationId: NEW_OPERATION, amount: 1700 })],
      open: opensNothing('refund'),
      authenticate: needsNoShopper('refund'),
      record: [refunded({ amount: 800 })],
    },
  },
  REFUNDED: {
    given: [...asCaptured, refundRequested(), refunded()],
    responses: {
      create: exists,
      capture: noCapture('REFUNDED'),
      void: noVoid('REFUNDED'),
      refund: noRefund('the payment is already fully refunded'),
      open: opensNothing('refund'),
      authenticate: needsNoShopper('refund'),
      record: known,
    },
  },
  VOIDED: {
    given: [...asAuthorized, voidRequested(), voided()],
    responses: {
      create: exists,
      capture: noCapture('VOIDED'),
      void: noVoid('VOIDED'),
      refund: notCaptured('VOIDED'),
      open: opensNothing('void'),
      authenticate: needsNoShopper('void'),
      record: known,
    },
  },
};
