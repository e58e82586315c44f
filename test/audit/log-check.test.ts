/** A log that was changed with every hash right, found by the checkpoints of who followed it (gaps §6). */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type Projector, startProjector } from '../../projector/compose.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { LogMisfit } from '../../shared/subscription/errors.ts';
import type { Relay } from '../../topics/relay.ts';
import { memoryDocument, memoryFeed } from '../support/memory-feed.ts';
import { keptThread } from '../support/once/kept-threads.ts';
import { readModelsIn } from '../support/read-models-here.ts';
import { relaying, untilHalted } from '../support/relaying.ts';
import { silent } from '../support/silent-log.ts';
import { type LogUnderTest, openFilledLog, openRows, rewritten } from '../support/tampering.ts';
import { until } from '../support/until.ts';

let log: LogUnderTest;
let store: EventStore;
beforeEach(async () => {
  log = await openFilledLog();
  store = log.store;
});
afterEach(async () => {
  await store.close();
  await log.close();
});

/** The first event is another one, and every hash after it fits; the last event keeps its own. */
const writeLogAnew = async (): Promise<void> => {
  await store.close();
  const rows = openRows(log.file);
  const anew = rewritten(rows.rows, 0);
  expect(anew.at(-1)?.hash).toBe(rows.rows.at(-1)?.hash);
  rows.write(anew);
  rows.close();
  store = await openSqliteEventStore({ file: log.file, newThread: keptThread });
};

const following = async (use: (projector: Projector) => Promise<void>): Promise<void> => {
  const readModels = readModelsIn(log.folder);
  let projector: Projector | undefined;
  try {
    projector = await startProjector({ store, readModels, logger: silent });
    await use(projector);
  } finally {
    await projector?.stop();
    await readModels.close();
  }
};
const caughtUp = ({ caughtUp: done }: Projector): Promise<void> => done;

test('a log whose first event was changed, with all hashes after it, is refused by the read models', async () => {
  await following(caughtUp);
  await following(caughtUp);
  await writeLogAnew();
  await expect(following(caughtUp)).rejects.toThrow(LogMisfit);
  await expect(following(caughtUp)).rejects.toThrow(
    /^the event log has other events up to the read models' checkpoint \(36\): [^\n]+ delete the read models/,
  );
});

test('the relay halts at such a log', async () => {
  const parts = { feed: memoryFeed(), checkpoint: memoryDocument() };
  const sent = (relay: Relay) => until('sent', () => relay.status().checkpoint === '36');
  await relaying({ ...parts, store }, sent);
  await relaying({ ...parts, store }, sent);
  await writeLogAnew();
  await relaying({ ...parts, store }, async (relay) => {
    await untilHalted(relay);
    expect(relay.status().error).toMatch(/^the event log has other events up to the checkpoint of/);
  });
});

test('a checkpoint of an earlier version, with the hash of its event alone, fits the log', async () => {
  const readModels = readModelsIn(log.folder);
  await readModels.apply([], null, '36', (await store.hashAt('36'))?.hash);
  await readModels.close();
  await following(caughtUp);
});
