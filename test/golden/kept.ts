/** What is kept of the code as it was: archives of data folders, and every text that it gave of them. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { EVENT_VERSIONS } from '../../shared/payment/events.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import { runCli } from '../support/cli.ts';
import { newEvent, voided } from '../support/payment-events.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  type Captured,
  captureAll,
  captureMany,
  captureParked,
  openQuietly,
  type Story,
} from './captures.ts';
import { writeMany } from './many.ts';
import { keep, tellStory } from './story.ts';
import { goldenFile, pack, SETTINGS } from './world.ts';

const STORY = goldenFile('story.tar.gz');
const PARKED = goldenFile('parked.tar.gz');
const TEXTS = goldenFile('texts.json.gz');

/** `many` are digests of a log of `MANY` payments, which follows from their number. */
export type Kept = { story: Story; parked: string; texts: Captured; many: Captured };

const MANY = 20_000;

export const readKept = (): Kept => {
  const { requests, secrets, texts, many } = JSON.parse(gunzipSync(readFileSync(TEXTS)).toString());
  const story = { archive: STORY, requests, secrets };
  return { story, parked: PARKED, texts: new Map(texts), many: new Map(many) };
};

/** Makes the log of many payments, and what is compared of it. */
export const manyAsNow = async (): Promise<Captured> => {
  const folder = temporaryFolder();
  try {
    await writeMany(folder.path, MANY);
    return await captureMany(folder.path);
  } finally {
    folder.remove();
  }
};

/**
 * Puts an event in the log that cannot follow, for each of these payments, and has the projector park
 * them; an operator acknowledges the first one.
 */
const park = async (folder: string, paymentIds: readonly string[]): Promise<void> => {
  const store = await openSqliteEventStore({ file: join(folder, 'events.sqlite') });
  const names: string[] = [];
  for (const paymentId of paymentIds) {
    const stream = streamOf(paymentId);
    const last = (await store.readStream(stream)).at(-1);
    if (last === undefined) throw new Error('the payment has no events');
    const expected = { revision: last.revision, hash: last.hash };
    await store.append(stream, expected, [newEvent(voided(), last.time)]);
    names.push(`${stream}@${last.revision + 1}`);
  }
  await store.close();
  await using service = await openQuietly(folder);
  const env = { ...SETTINGS, PAYMENTS_URL: await service.listen() };
  const why = ['--note', 'tried by hand'];
  await runCli(['verify', '--all', '--acknowledge', names[0] ?? '', ...why], env);
  await service.restart((left) => keep(left, folder));
};

/** Throws where the two logs lack a type of event. */
const rejectGaps = (texts: Captured): void => {
  const lines = `${texts.get('export.jsonl')}${texts.get('parked/export.jsonl')}`;
  const found = new Set([...lines.matchAll(/"type":"([A-Za-z]+)"/g)].map(([, type]) => type));
  const missing = Object.keys(EVENT_VERSIONS).filter((type) => !found.has(type));
  if (missing.length > 0) throw new Error(`the story has no ${missing.join(', ')}`);
};

/** Makes all of it from the code as it stands. Throws where something is kept already. */
export const makeKept = async (): Promise<void> => {
  for (const file of [STORY, PARKED, TEXTS])
    if (existsSync(file)) throw new Error(`${file} is kept: it is never made anew`);
  const folder = temporaryFolder();
  const written = join(folder.path, 'story');
  const { requests, secrets } = await tellStory(written);
  pack(written, STORY);
  const made = requests.filter(({ path, status }) => path === '' && status === 200);
  await park(
    written,
    made.slice(0, 2).map(({ text }) => JSON.parse(text).paymentId),
  );
  pack(written, PARKED);
  const story = { archive: STORY, requests, secrets };
  const texts = [...(await captureAll(story)), ...(await captureParked(PARKED))];
  rejectGaps(new Map(texts));
  const many = [...(await manyAsNow())];
  writeFileSync(TEXTS, gzipSync(JSON.stringify({ requests, secrets, texts, many }), { level: 9 }));
  folder.remove();
};
