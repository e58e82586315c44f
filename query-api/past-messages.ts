/** What a merchant's endpoint is sent, of the events that the log holds already: read as a scan (ADR-0185). */
import { createMerchantLookup, readModelsOver, scanCalls } from '../audit/merchants.ts';
import { decode } from '../shared/event-store/codec.ts';
import { StoreUnavailable } from '../shared/event-store/errors.ts';
import { followPaymentStates, type PaymentStates } from '../shared/event-store/payment-states.ts';
import type { LogEvent, LogReader, Position } from '../shared/event-store/port.ts';
import { type LogScan, logPages, scanLog } from '../shared/event-store/scan-log.ts';
import { isWanted, messageAt } from '../shared/webhooks/message.ts';

type EventTypes = readonly string[] | undefined;

/** Empty for an event that is not sent. */
export const messageText = async (
  states: PaymentStates,
  event: LogEvent,
  eventTypes: EventTypes,
): Promise<string> => {
  const message = await messageAt(states, event);
  if (message === undefined || !isWanted({ eventTypes }, message.type)) return '';
  // A body has no line breaks, so it can stand in one data line.
  return `id: ${event.position}\nevent: ${message.type}\ndata: ${message.body}\n\n`;
};

type Args = {
  merchantId: string;
  eventTypes: EventTypes;
  after: Position | null;
  end: Position;
};

export const past: LogScan<Args, string, void> = async function* (
  log,
  { merchantId, eventTypes, after, end },
  { signal, call },
) {
  const merchants = createMerchantLookup(log, readModelsOver(call));
  const states = followPaymentStates(log);
  for await (const { page, unreadable } of logPages(log.stored, after, end, signal)) {
    let text = '';
    for (const form of page)
      if ((await merchants.ofForm(form)) === merchantId)
        text += await messageText(states, decode(form), eventTypes);
    if (text !== '') yield text;
    if (unreadable !== undefined) throw new StoreUnavailable(unreadable.reason);
  }
};

/** Throws StoreUnavailable. */
export const pastMessages = (
  deps: { store: LogReader } & Parameters<typeof scanCalls>[0],
  args: Args,
  signal: AbortSignal,
): AsyncGenerator<string> =>
  scanLog<string, void>(deps.store, {
    ...{ module: import.meta.url, job: 'past', args, calls: scanCalls(deps), signal },
  });
