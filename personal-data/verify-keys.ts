/** Compares the boxes of a log with the store of keys: which open, which were erased, and which are as neither says. */
import { formsLeft } from '../shared/event-store/chain.ts';
import { decode, isReadable } from '../shared/event-store/codec.ts';
import type { FileFault, LogJob, LogReader, RecordedEvent } from '../shared/event-store/port.ts';
import { logPages, scanLog } from '../shared/event-store/scan-log.ts';
import { paymentOf } from '../shared/payment/events.ts';
import { pause } from '../shared/runtime/back-off.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import { resultOf } from '../shared/runtime/jobs.ts';
import { fewAtOnce, mapInSlices } from '../shared/runtime/scheduling.ts';
import { openBox } from './box.ts';
import type { FoundKey, KeyStore } from './port.ts';

/** Version 1 of an event has its texts in the clear. */
const boxesIn = ({ stream, revision, position, event: { type: eventType, data } }: RecordedEvent) =>
  Object.entries(data).flatMap(([field, value]) => {
    const { box, key } = Object(value) as { box?: string; key: string };
    return box === undefined ? [] : [{ stream, revision, position, eventType, field, box, key }];
  });
type Box = ReturnType<typeof boxesIn>[number];

const NONE = { opens: 0, erased: 0, missing: 0, alive: 0, unreadable: 0, refused: 0 };
const NAMED_MAX = 100;

const judge = (box: Box, key: FoundKey, isErased: boolean): [keyof typeof NONE, why?: string] => {
  if (key === 'missing' || key === 'erased')
    return isErased ? ['erased'] : ['missing', `its key is ${key}, and no event erased it`];
  if (isErased) return ['alive', 'its key is still stored after its erasure'];
  if (key === 'unreadable') return [key, 'its key was changed, or its master key is not set'];
  try {
    openBox(key, box, box);
    return ['opens'];
  } catch (error) {
    return ['refused', reasonOf(error)];
  }
};

/** The boxes of whole payments; an event that cannot be read is a break of the log. */
const judgeIn = async ({ stored }: LogReader, read: KeyStore['read'], streams: string[]) => {
  const forms = (await fewAtOnce(streams, (stream) => formsLeft(stored, stream))).flat();
  const events = (await mapInSlices(forms, (form) => decode(form))).filter(isReadable);
  const erased = new Set(
    events.flatMap(({ event: { data } }) => ('keys' in data ? data.keys : [])),
  );
  const boxes = events.flatMap(boxesIn);
  const keys = boxes.length > 0 ? await read(boxes.map(({ key }) => key)) : new Map();
  return mapInSlices(boxes, (box) => {
    const [finding, why] = judge(box, keys.get(box.key), erased.has(box.key));
    return { ...box, finding, why };
  });
};

const AGAIN_AFTER_MS = 1_000;

type Found = typeof NONE & { named: FileFault[] };
type Calls = Pick<KeyStore, 'read'>;

export const checkKeys: LogJob<string | null, never, Found, Calls> = async (log, end, tools) => {
  const { signal, calls } = tools;
  const found: Found = { ...NONE, named: [] };
  for await (const { page } of logPages(log.stored, null, end, signal)) {
    const begun = page.filter(({ revision, stream }) => revision === 0 && paymentOf(stream));
    const streams = begun.map(({ stream }) => stream);
    let judged = await judgeIn(log, calls.read, streams);
    if (judged.some(({ why }) => why) && found.named.length < NAMED_MAX) {
      // An erasure may be between its event and its keys.
      await pause(AGAIN_AFTER_MS, signal);
      judged = await judgeIn(log, calls.read, streams);
    }
    for (const { position, stream, revision, field, finding, why } of judged) {
      found[finding] += 1;
      if (why === undefined || found.named.length === NAMED_MAX) continue;
      found.named.push({ position, stream, revision, reason: `${field}: ${why}` });
    }
  }
  return found;
};

/** Up to the log's end at the call. Throws what the stores throw. */
export const verifyKeysOf =
  (store: LogReader, { read }: Calls) =>
  async (signal: AbortSignal): Promise<Found> =>
    resultOf(scanLog(store, checkKeys, await store.end(), { calls: { read }, signal }));
