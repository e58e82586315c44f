/** What a merchant's endpoint is sent, also of the events that the log holds already. */
import { type PastArgs, pastTexts } from '../audit/log.ts';
import type { MerchantDocuments } from '../audit/merchants.ts';
import { followPaymentStates, type PaymentStates } from '../shared/event-store/payment-states.ts';
import type { LogEvent, LogJob } from '../shared/event-store/port.ts';
import type { OpenText } from '../shared/payment/state.ts';
import { isWanted, messageAt } from '../webhooks/message.ts';

type Wanted = { eventTypes?: readonly string[] | undefined };

export const messageText = async (
  states: PaymentStates,
  event: LogEvent,
  wanted: Wanted,
  open: OpenText,
) => {
  const message = await messageAt(states, event, open);
  if (message === undefined || !isWanted(wanted, message.type)) return '';
  // A body has no line breaks, so it can stand in one data line.
  return `id: ${event.position}\nevent: ${message.type}\ndata: ${message.body}\n\n`;
};

export const pastMessages: LogJob<
  PastArgs & Wanted,
  string,
  void,
  MerchantDocuments & { openText: OpenText }
> = (log, args, tools) => {
  const states = followPaymentStates(log);
  return pastTexts(log, args, tools, (event) =>
    messageText(states, event, args, tools.calls.openText),
  );
};
