/** The events of an outcome: one, or two for an approved sale (gaps §6). */
import type { RecordCommand } from './commands.ts';
import type { PaymentEvent } from './payment-events.ts';
import { givenFailure } from './payment-response.ts';
import type { Operation, PaymentState } from './state.ts';

const DECLINED_EVENTS = {
  create: 'PaymentFailed',
  capture: 'PaymentCaptureDeclined',
  void: 'PaymentVoidDeclined',
  refund: 'PaymentRefundDeclined',
} as const;

export const outcomeEvents = (
  { currency, captureNow, authorizedAmount }: PaymentState,
  { kind, operationId, amountMinor: amount, waitsUntil }: Operation,
  command: RecordCommand,
): PaymentEvent[] => {
  const { outcome, resolution } = command;
  if (outcome !== 'APPROVED') {
    // A fence ends the time of a shopper who did not come (gaps §21).
    const failureCode =
      waitsUntil === undefined ? 'PROVIDER_UNAVAILABLE' : 'AUTHENTICATION_REQUIRED';
    const failure = givenFailure(outcome === 'DECLINED' ? command : { failureCode });
    const data = { operationId, amount, currency, ...failure, outcome, resolution };
    return [{ type: DECLINED_EVENTS[kind], data }];
  }
  const { providerReference, authorizationExpiresAt } = command;
  const data = { operationId, amount, currency, providerReference, resolution };
  switch (kind) {
    case 'create':
      if (!captureNow)
        return [{ type: 'PaymentAuthorized', data: { ...data, authorizationExpiresAt } }];
      return [
        { type: 'PaymentAuthorized', data },
        { type: 'PaymentCaptured', data },
      ];
    case 'capture': {
      const releasedAmount = authorizedAmount - amount || undefined;
      return [{ type: 'PaymentCaptured', data: { ...data, releasedAmount } }];
    }
    case 'void':
      return [{ type: 'PaymentVoided', data }];
    case 'refund':
      return [{ type: 'PaymentRefunded', data }];
  }
};
