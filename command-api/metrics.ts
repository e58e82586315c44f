/** The metrics of each command, append and call to the provider. */
import type { RecordedEvent } from '../shared/event-store/port.ts';
import type { Metrics } from '../shared/runtime/metrics.ts';
import { REJECTIONS } from './provider/rejections.ts';
import type { CommandResponse } from './responses.ts';

/** What the command side calls as it works. */
export const recordMetrics = (metrics: Metrics) => {
  // An alert on the increase of a counter that begins at 1 would miss the first rejection.
  for (const reason of REJECTIONS) metrics.providerRejections.inc({ reason }, 0);
  return {
    onConflict: (): void => metrics.appendConflicts.inc(),
    onAppended: (events: readonly RecordedEvent[]): void => {
      for (const { event } of events) metrics.eventsAppended.inc({ type: event.type });
    },
    onCardLikeText: (): void => metrics.cardLikeTexts.inc(),
    /** Called after each call to the provider, with its time in seconds. */
    onCall: (operation: string, outcome: string, seconds: number): void =>
      metrics.providerSeconds.observe({ operation, outcome }, seconds),
    /** Called when the provider rejects a key, a permission, a rate or a setting. */
    onRejection: (reason: string): void => metrics.providerRejections.inc({ reason }),
    /** Called once for each command, with its time in seconds. */
    onCommand: (command: string, outcome: CommandResponse['outcome'], seconds: number): void => {
      metrics.commands.inc({ command, outcome });
      metrics.commandSeconds.observe({ command }, seconds);
    },
  };
};
