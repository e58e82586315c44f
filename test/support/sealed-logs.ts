/**
 * A log that a projector follows and seals at the stand-in of EventStoreDB, and a thief who may write it,
 * and computes every hash anew.
 */
import { join } from 'node:path';
import { openSealer } from '../../audit/seals/open.ts';
import { startProjector } from '../../projector/compose.ts';
import { GENESIS_HASH, hashOf } from '../../shared/event-store/chain.ts';
import { canonicalJson } from '../../shared/event-store/codec.ts';
import { openEventStoreDb } from '../../shared/event-store/eventstoredb/event-store.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { streamOf } from '../../shared/payment/events.ts';
import { SEALS_STREAM } from '../../shared/payment/seal-events.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import type { Stored } from './eventstoredb-stand-in/stored.ts';
import { type StandIn, startStandIn } from './eventstoredb-stand-in.ts';
import { appendLife } from './many-payments.ts';
import { readModelsIn } from './read-models-here.ts';
import { silent } from './silent-log.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { until } from './until.ts';

/** What an event's hash covers. */
type Hashed = { stream: string; revision: number; previousHash: string; data: unknown } & Record<
  string,
  unknown
>;
/** Undefined takes the event out. */
export type Change = (event: Hashed) => Hashed | undefined;

/** Revisions, links and hashes of what is left at a server, computed anew in the order of the log. */
const chained = (change: Change) => {
  const ends = new Map<string, { revision: number; hash: string }>();
  return (text: string): { hashed: Hashed; hash: string } | undefined => {
    const changed = change(JSON.parse(text));
    if (changed === undefined) return undefined;
    const end = ends.get(changed.stream) ?? { revision: -1, hash: GENESIS_HASH };
    const revision = end.revision + 1;
    const hashed = { ...changed, revision, previousHash: end.hash };
    const hash = hashOf(canonicalJson(hashed));
    ends.set(changed.stream, { revision, hash });
    return { hashed, hash };
  };
};

const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64');
const parsed = (text: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(text, 'base64').toString());

const textOf = ({ stream, revision, id, type, data, metadata }: Stored): string => {
  const { hash: _, ...rest } = parsed(metadata);
  return canonicalJson({ ...rest, stream, revision, id, type, data: parsed(data) });
};

/** A scavenge leaves the positions of what stays as they are. */
const rewriteServer = (standIn: StandIn, change: Change): void =>
  standIn.edit((events) => {
    const anew = chained(change);
    return events.flatMap((stored) => {
      if (parsed(stored.metadata).hash === undefined) return [stored];
      const made = anew(textOf(stored));
      if (made === undefined) return [];
      const { context, previousHash, schemaVersion, time, data, revision } = made.hashed;
      const metadata = { context, hash: made.hash, previousHash, schemaVersion, time };
      return [{ ...stored, revision, data: base64(data), metadata: base64(metadata) }];
    });
  });

const logger = { debug: () => undefined, warn: () => undefined };

/** A change that takes one payment out, as deleting its stream and a scavenge do. */
export const without =
  (paymentId: string): Change =>
  (event) =>
    event.stream === streamOf(paymentId) ? undefined : event;

/** A change that takes out some seals. */
export const withoutSeals =
  (isOut: (revision: number) => boolean): Change =>
  (event) =>
    event.stream === SEALS_STREAM && isOut(event.revision) ? undefined : event;

/** A change to one payment that no sum of it shows. */
export const ofAnotherMerchant =
  (paymentId: string): Change =>
  (event) =>
    event.stream === streamOf(paymentId) && event.revision === 0
      ? { ...event, data: { ...Object(event.data), merchantId: 'm_other' } }
      : event;

/** What runs over a log: a projector that follows it and the sealer beside it. */
export type Following = {
  seal(): Promise<void>;
  caughtUp(): Promise<void>;
  standingBy(): boolean;
  /** Without the seal of a stop, as a process that is killed. */
  die(): Promise<void>;
  stop(): Promise<void>;
};

/** One holder at a time, as in read models that several processes share. */
const leased = (readModels: ReadModels): ReadModels => {
  let held: string | undefined;
  return {
    ...readModels,
    lease: async (holder) => {
      const isFree = held === undefined;
      held ??= holder;
      if (held !== holder) return false;
      return isFree ? 'free' : 'held';
    },
    release: async (holder) => {
      if (held === holder) held = undefined;
    },
  };
};

/** Opens an empty log. The sealing key lies on a volume of its own. */
export const openSealedLog = async () => {
  const folder = temporaryFolder();
  const standIn = await startStandIn({ noisy: true });
  const open = () => openEventStoreDb({ url: standIn.url, logger });
  const keyFile = join(folder.path, 'sealing-key.pem');
  const config = { seals: { keyFile, eventsMax: 10_000, everyMs: 3_600_000 } };
  const openReadModels = (file: string) => leased(readModelsIn(folder.path, file));
  let readModels = openReadModels('read-models.sqlite');
  const sealers = new Set<{ stop(): Promise<void> }>();
  let store: EventStore = await open();

  /** Starts to follow and to seal, over `read` where a test looks at what is read. */
  const follow = async (read: EventStore = store): Promise<Following> => {
    const sealer = await openSealer({ config, store: read, log: silent });
    sealers.add(sealer);
    const { running } = sealer;
    const backOff = { minMs: 1, maxMs: 8 };
    const projector = await startProjector({
      ...{ store: read, readModels, logger: silent, backOff, running },
      leaseMs: 300,
    }).catch(async (error: Error) => {
      await sealer.stop();
      throw error;
    });
    const caughtUp = () =>
      until('followed', async () => {
        const { position } = await store.head(null);
        const { state, checkpoint } = projector.status();
        return state === 'running' && checkpoint === position;
      });
    return {
      seal: sealer.seal,
      caughtUp,
      standingBy: () => projector.status().state === 'standing-by',
      die: projector.stop,
      stop: async () => {
        await sealer.stop();
        await projector.stop();
      },
    };
  };

  return {
    store: () => store,
    readModels: () => readModels,
    folder: folder.path,
    keyFile,
    follow,
    fill: async (names: readonly string[]): Promise<void> => {
      for (const paymentId of names) await appendLife(store, paymentId);
    },
    /** Follows and seals up to the end of the log, and stops. */
    followAndSeal: async (): Promise<void> => {
      const following = await follow();
      await following.caughtUp();
      await following.stop();
    },
    forgetReadModels: async (): Promise<void> => {
      await readModels.close();
      readModels = openReadModels('new-read-models.sqlite');
    },
    /** For EVENTSTOREDB_URL. */
    url: standIn.url,
    /** While the service is stopped. */
    rewrite: async (change: Change): Promise<void> => {
      await store.close();
      rewriteServer(standIn, change);
      store = await open();
    },
    close: async (): Promise<void> => {
      await store.close();
      // What a killed process has left: nothing is sealed in a closed store.
      for (const sealer of sealers) await sealer.stop();
      await readModels.close();
      await standIn.close();
      folder.remove();
    },
  };
};

export type SealedLog = Awaited<ReturnType<typeof openSealedLog>>;
