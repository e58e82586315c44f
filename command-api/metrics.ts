/** The metrics of each command, append and call to the provider. */
import type { RecordedEvent } from '../shared/event-store/port.ts';
import type { Metrics } from '../shared/runtime/metrics.ts';
import { REJECTIONS } from './provider/rejections.ts';
import type { CommandResponse } from './responses.ts';

/** What the command side calls as it works. */
export const recordMetrics = (metrics: Metrics) => {
  // An alert on the increase of a counter that begins at 1 would miss the first rejection.
  for (const reason of REJECTIONS) metrics.providerRejections.add(0, reason);
  return {
    onConflict: (): void => metrics.appendConflicts.add(1),
    onAppended: (events: readonly RecordedEvent[]): void => {
      for (const { event } of events) metrics.eventsAppended.add(1, event.type);
    },
    onCardLikeText: (): void => metrics.cardLikeTexts.add(1),
    /** Called after each call to the provider, with its time in seconds. */
    onCall: (operation: string, outcome: string, seconds: number): void =>
      metrics.providerSeconds.observe(seconds, operation, outcome),
    /** Called when the provider rejects a key, a permission, a rate or a setting. */
    onRejection: (reason: string): void => metrics.providerRejections.add(1, reason),
    /** Called once for each command, with its time in seconds. */
    onCommand: (command: string, outcome: CommandResponse['outcome'], seconds: number): void => {
      metrics.commands.add(1, command, outcome);
      metrics.commandSeconds.observe(seconds, command);
    },
  };
};
