/**
 * P5 with poison events of every kind, written into the log's own file at places that chance draws:
 * the other payments become readable, exactly the poisoned ones are parked, and once a person has
 * corrected the event, a retry gives the document of a log that was never damaged.
 */
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { startProjector } from '../../projector/compose.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { appendLives, foldsOf } from '../support/many-payments.ts';
import { POISON_EVENTS, putPoisonEvents } from '../support/poison-events.ts';
import { randomOf } from '../support/random.ts';
import { readModelsAt } from '../support/read-models-here.ts';
import { silent } from '../support/silent-log.ts';
import { openRows } from '../support/tampering.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const random = randomOf();
const HEALTHY = 20;
const poisoned = POISON_EVENTS.map((_, n) => `pay_poisoned_${n}`);
const healthy = Array.from({ length: HEALTHY }, (_, n) => `pay_healthy_${n}`);
/** Poisoned payments stand among the others, wherever chance puts them. */
const all = [...poisoned, ...healthy].sort(() => (random.chance(0.5) ? 1 : -1));

test(`P5: ${POISON_EVENTS.length} kinds of poison stop their own payments only`, async () => {
  const folder = temporaryFolder();
  const files = ['events.sqlite', 'read-models.sqlite'].map((name) => join(folder.path, name));
  const [events = '', documents = ''] = files;
  const filled = await openSqliteEventStore({ file: events });
  await appendLives(filled, all);
  const whole = await foldsOf(filled, all);
  await filled.close();

  // A newly opened store has no event in memory. It opens before the damage, for opening a log with
  // a damaged tail is refused.
  const store = await openSqliteEventStore({ file: events });
  const rows = openRows(events);
  const expected = putPoisonEvents(rows, poisoned, random);
  const readModels = readModelsAt(documents);
  const projector = await startProjector({ store, readModels, logger: silent });
  const bodyOf = async (id: string) => (await readModels.getAny(id))?.body;
  const began = performance.now();
  // P5 promises that the others move on, not how soon: a loaded machine may take its time.
  await until('the others are readable', async () => {
    for (const id of healthy) if ((await bodyOf(id)) !== whole.get(id)) return false;
    return true;
  });
  const tookMs = Math.round(performance.now() - began);
  await projector.caughtUp;

  const parked = await readModels.parked(1000);
  expect(parked.map(({ paymentId, revision }) => `${paymentId}@${revision}`).sort()).toEqual(
    expected.map(({ paymentId, revision }) => `${paymentId}@${revision}`).sort(),
  );
  expect(parked.every(({ reason }) => reason !== '')).toBe(true);
  for (const { paymentId } of expected) expect(await projector.retryParked(paymentId)).toBe(false);
  expect(await readModels.parked(1000)).toHaveLength(POISON_EVENTS.length);

  rows.restore();
  rows.close();
  for (const { paymentId } of expected) expect(await projector.retryParked(paymentId)).toBe(true);
  expect(await readModels.parked(1000)).toEqual([]);
  for (const id of all) expect(await bodyOf(id)).toBe(whole.get(id));
  await projector.stop();
  await readModels.close();
  await store.close();
  folder.remove();
  process.stderr.write(
    `poison: ${POISON_EVENTS.length} kinds, ${HEALTHY} others whole after ${tookMs} ms, ` +
      `${expected.length} parked, all restored to the byte\n`,
  );
});
