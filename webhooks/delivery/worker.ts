/** The deliverer in its thread (thread.ts), which reads the log over a connection of its own. */
import { join } from 'node:path';
import type { Position } from '../../shared/event-store/port.ts';
import { openFollowedLog } from '../../shared/event-store/sqlite/log-reader.ts';
import { pause } from '../../shared/runtime/back-off.ts';
import { logOver, type Scan } from '../../shared/runtime/scan.ts';
import { openTraces } from '../../shared/runtime/traces.ts';
import { takeSpanCounts } from '../../shared/runtime/tracing.ts';
import { addressKinds } from '../endpoints/addresses.ts';
import { openDeliveries } from '../store/open.ts';
import { deliver } from './follow-endpoints.ts';
import { createSender } from './send.ts';
import type { CountedAttempt, Note, ThreadArgs } from './thread.ts';

const NOTE_MS = 250;

/** Until the signal is aborted; a failure ends it with its error. */
export const deliveries: Scan<ThreadArgs, Note, Note> = async function* (
  { config, allowedNetworks, secret, end },
  { signal, call },
) {
  const logger = logOver(call);
  const fileOf = (name: string): string => join(config.dataDir, name);
  const log = openFollowedLog(fileOf('events.sqlite'), end);
  const { traces: exported, mode } = config;
  const traces = exported && (await openTraces({ ...exported, mode, log: logger }));
  const kept = await openDeliveries({ config, fileOf });
  let attempts: CountedAttempt[] = [];
  const delivering = deliver({
    store: log,
    deliveries: kept,
    sender: createSender({ kindOf: addressKinds(allowedNetworks) }),
    disable: async (...request) => void call('disable', ...request).catch(() => undefined),
    secret,
    logger,
    onAttempt: ({ outcome, latencyMs }) => attempts.push({ outcome, latencyMs }),
  });
  const follow = async (known: Position | null): Promise<void> => {
    for (let now = known; !signal.aborted; log.grow(now))
      now = (await call('endAfter', now)) as Position | null;
  };
  const note = (): Note => {
    const made = attempts;
    attempts = [];
    return { status: delivering.status(), spans: takeSpanCounts(), attempts: made };
  };
  const over = Promise.race([delivering.ended, follow(end)]);
  over.catch(() => undefined);
  try {
    while (!signal.aborted) {
      yield note();
      await Promise.race([over, pause(NOTE_MS, signal)]);
    }
  } finally {
    await delivering.stop();
  }
  await traces?.stop();
  await kept.close();
  log.close();
  return note();
};
