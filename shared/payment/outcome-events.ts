/** The events of an outcome: one, or two for an approved sale (gaps §6). */
import type { RecordCommand } from './commands.ts';
import type { EventData, PaymentEvent } from './payment-events.ts';
import { givenFailure } from './payment-response.ts';
import type { Operation, PaymentState } from './state.ts';

export const outcomeEvents = (
  state: PaymentState,
  operation: Operation,
  command: RecordCommand,
): PaymentEvent[] =>
  command.outcome === 'APPROVED'
    ? approved(state, operation, command)
    : [declined(state, operation, command)];

const approved = (
  state: PaymentState,
  operation: Operation,
  {
    providerReference,
    authorizationExpiresAt,
    resolution,
  }: Extract<RecordCommand, { outcome: 'APPROVED' }>,
): PaymentEvent[] => {
  const data: EventData<'PaymentAuthorized'> = {
    operationId: operation.operationId,
    amount: operation.amountMinor,
    currency: state.currency,
    ...(providerReference === undefined ? {} : { providerReference }),
    ...(resolution === undefined ? {} : { resolution }),
  };
  switch (operation.kind) {
    case 'create':
      return state.captureNow
        ? [
            { type: 'PaymentAuthorized', data },
            { type: 'PaymentCaptured', data },
          ]
        : [
            {
              type: 'PaymentAuthorized',
              data: { ...data, ...(authorizationExpiresAt && { authorizationExpiresAt }) },
            },
          ];
    case 'capture': {
      const releasedAmount = state.authorizedAmount - operation.amountMinor;
      const released = releasedAmount > 0 ? { releasedAmount } : {};
      return [{ type: 'PaymentCaptured', data: { ...data, ...released } }];
    }
    case 'void':
      return [{ type: 'PaymentVoided', data }];
    case 'refund':
      return [{ type: 'PaymentRefunded', data }];
  }
};

const DECLINED_EVENTS = {
  create: 'PaymentFailed',
  capture: 'PaymentCaptureDeclined',
  void: 'PaymentVoidDeclined',
  refund: 'PaymentRefundDeclined',
} as const;

const declined = (
  state: PaymentState,
  { kind, operationId, amountMinor, waitsUntil }: Operation,
  command: Exclude<RecordCommand, { outcome: 'APPROVED' }>,
): PaymentEvent => {
  const { resolution } = command;
  // A fence ends the time of a shopper who did not come (gaps §21).
  const failureCode = waitsUntil === undefined ? 'PROVIDER_UNAVAILABLE' : 'AUTHENTICATION_REQUIRED';
  return {
    type: DECLINED_EVENTS[kind],
    data: {
      operationId,
      amount: amountMinor,
      currency: state.currency,
      ...givenFailure(command.outcome === 'DECLINED' ? command : { failureCode }),
      outcome: command.outcome,
      ...(resolution === undefined ? {} : { resolution }),
    },
  };
};
