/** What is kept of the code as it was: archives of data folders, and every text that it gave of them. */
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type Captured, captureMany, type Story } from './captures.ts';
import { writeMany } from './many.ts';
import { goldenFile } from './world.ts';

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
