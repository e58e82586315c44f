/**
 * The files of a data folder, damaged at random: each damaged folder gives the right responses, or an
 * error that names the damage, or is refused at the start.
 */
import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { startProjector } from '../../projector/compose.ts';
import { LogMisfit } from '../../projector/errors.ts';
import { getPayment } from '../../query-api/get-payment.ts';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { searchedOnceFilled } from '../../shared/read-models/filled.ts';
import { appendLives, foldsOf } from '../support/many-payments.ts';
import { type Random, randomOf } from '../support/random.ts';
import { readModelsIn } from '../support/read-models-here.ts';
import { silent } from '../support/silent-log.ts';
import { openRows, verifyWhole } from '../support/tampering.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const FILES = [
  'events.sqlite',
  'events.sqlite-wal',
  'read-models.sqlite',
  'read-models.sqlite-wal',
] as const;
type File = (typeof FILES)[number];
const PAGE_BYTES = 4096;
const MERCHANT = 'm_1';
const CAUGHT_UP_MS_MAX = 2000;

type WholeFolder = {
  path: string;
  /** Payment id → body, as it was before any damage. */
  bodies: ReadonlyMap<string, string>;
  remove(): void;
};

const openParts = async (folder: string) => {
  const store = await openSqliteEventStore({ file: join(folder, 'events.sqlite') });
  const readModels = searchedOnceFilled(readModelsIn(folder), store);
  const projector = await startProjector({ store, readModels, logger: silent }).catch(
    async (error) => {
      await readModels.close();
      await store.close();
      throw error;
    },
  );
  return {
    store,
    readModels,
    projector,
    close: async () => {
      await projector.stop();
      await readModels.close();
      await store.close();
    },
  };
};

/** The files that a process leaves which is killed: half of the log is in the WALs. */
const makeWholeFolder = async (payments: number): Promise<WholeFolder> => {
  const folder = temporaryFolder();
  const running = temporaryFolder();
  const ids = Array.from({ length: payments }, (_, n) => `pay_${n}`);
  for (const half of [ids.slice(0, payments / 2), ids.slice(payments / 2)]) {
    const parts = await openParts(running.path);
    await appendLives(parts.store, half);
    for (const id of half) await parts.readModels.waitForRevision(id, 5, CAUGHT_UP_MS_MAX);
    for (const name of FILES) copyFileSync(join(running.path, name), join(folder.path, name));
    await parts.close();
  }
  const store = await openSqliteEventStore({ file: join(running.path, 'events.sqlite') });
  const bodies = await foldsOf(store, ids);
  await store.close();
  running.remove();
  return { ...folder, bodies };
};

type Damage = (path: string, random: Random) => void;

const edited =
  (edit: (bytes: Buffer, random: Random) => Buffer): Damage =>
  (path, random) =>
    writeFileSync(path, edit(readFileSync(path), random));

const flipBits = edited((bytes, random) => {
  for (let flips = random.between(1, 8); flips > 0; flips -= 1) {
    const at = random.between(0, bytes.length - 1);
    bytes.writeUInt8((bytes[at] ?? 0) ^ (1 << random.between(0, 7)), at);
  }
  return bytes;
});
/** One bit in a digit gives another digit: nothing that a parser would stumble over. */
const changeDigit = edited((bytes, random) => {
  const digits = [...bytes.keys()].filter((at) => {
    const [before = 0, byte = 0] = [bytes[at - 1], bytes[at]];
    return byte >= 0x30 && byte <= 0x39 && (before === 0x3a || (before >= 0x30 && before <= 0x39));
  });
  const at = digits[random.between(0, digits.length - 1)];
  if (at !== undefined) bytes.writeUInt8((bytes[at] ?? 0) ^ 1, at);
  return bytes;
});
const cutTail = edited((bytes, random) => bytes.subarray(0, random.between(0, bytes.length - 1)));
const pageOf = (bytes: Buffer, random: Random): number =>
  random.between(0, Math.max(0, Math.floor(bytes.length / PAGE_BYTES) - 1)) * PAGE_BYTES;
const emptyPage = edited((bytes, random) => {
  const from = pageOf(bytes, random);
  return bytes.fill(0, from, from + PAGE_BYTES);
});
const swapPages = edited((bytes, random) => {
  const [a, b] = [pageOf(bytes, random), pageOf(bytes, random)];
  const kept = Buffer.from(bytes.subarray(a, a + PAGE_BYTES));
  bytes.copyWithin(a, b, b + PAGE_BYTES);
  kept.copy(bytes, b);
  return bytes;
});
const gone: Damage = (path) => rmSync(path);

const withRows =
  (change: (rows: ReturnType<typeof openRows>, random: Random) => void): Damage =>
  (path, random) => {
    const rows = openRows(path);
    change(rows, random);
    rows.close();
  };
const swapTexts = withRows(({ rows, write }, random) => {
  const [a, b] = [random.between(0, rows.length - 1), random.between(0, rows.length - 1)];
  write(
    rows.map((row, n) => {
      if (n !== a && n !== b) return row;
      const other = rows[n === a ? b : a];
      return { ...row, text: other?.text ?? '', hash: other?.hash ?? '' };
    }),
  );
});
const dropRow = withRows(({ rows, write }, random) => {
  const dropped = random.between(0, rows.length - 1);
  write(rows.filter((_, n) => n !== dropped));
});

const inBytes: Record<string, Damage> = {
  'flipped bits': flipBits,
  'another digit': changeDigit,
  'a cut tail': cutTail,
  'an empty page': emptyPage,
  'two pages swapped': swapPages,
  'the file gone': gone,
};
const inRows: Record<string, Damage> = { 'two texts swapped': swapTexts, 'a row gone': dropRow };

/** Every kind of damage with the file that it befalls. */
const DAMAGES: readonly { name: string; file: File; damage: Damage }[] = [
  ...FILES.flatMap((file) =>
    Object.entries(inBytes).map(([what, damage]) => ({ name: `${file}: ${what}`, file, damage })),
  ),
  ...Object.entries(inRows).map(([what, damage]) => ({
    name: `events.sqlite: ${what}`,
    file: 'events.sqlite' as const,
    damage,
  })),
];

/**
 * What became of a damaged folder. `right`: every payment is served whole; `refused`: the start is
 * refused; `named`: the damage is reported, with the event or the payment; `wrong`: none of these.
 */
type FolderCheck =
  | { kind: 'right' }
  | { kind: 'refused'; line: string }
  | { kind: 'named'; line: string }
  | { kind: 'wrong'; line: string };

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : 'unknown');

/** What verifying the whole log says; undefined where it finds nothing. */
const verified = async (store: EventStore): Promise<string | undefined> => {
  try {
    const { ok, broken } = await verifyWhole(store);
    return ok ? undefined : JSON.stringify(broken);
  } catch (error) {
    return messageOf(error);
  }
};

type Parts = Awaited<ReturnType<typeof openParts>>;

/** The answer to a GET, in the order of gaps §9; an error is an answer too, and a loud one. */
const responseOf = async ({ store, readModels, projector }: Parts, id: string): Promise<string> => {
  const behind = projector.isBehind(id);
  const deps = { store, readModels, behind: () => () => behind };
  try {
    return (await getPayment(deps, id, MERCHANT))?.body ?? 'not found';
  } catch (error) {
    return `refused: ${messageOf(error)}`;
  }
};

const isBefore = (older: string, whole: string): boolean => {
  if (older === 'not found') return true;
  const [then, now] = [JSON.parse(older), JSON.parse(whole)];
  const first = now.transactions.slice(0, then.transactions.length);
  return JSON.stringify(then.transactions) === JSON.stringify(first);
};

const checkFolder = async (parts: Parts, bodies: WholeFolder['bodies']): Promise<FolderCheck> => {
  const report = await verified(parts.store);
  let named: string | undefined;
  for (const [id, body] of bodies) {
    const response = await responseOf(parts, id);
    if (response === body) continue;
    const isNamed =
      response.startsWith('refused: ') || (report !== undefined && isBefore(response, body));
    if (!isNamed)
      return { kind: 'wrong', line: `${id}: ${response}\nverify: ${report ?? 'intact'}` };
    named ??= `${id}: ${response.slice(0, 120)}`;
  }
  const line = named ?? report;
  return line === undefined ? { kind: 'right' } : { kind: 'named', line };
};

/** Of damaged read models: a list has every payment, or is refused, or it is known that something differs. */
const checkList = async ({ readModels, projector }: Parts, payments: number): Promise<boolean> => {
  const page = await readModels.search({ merchantId: MERCHANT }, payments).catch(() => undefined);
  const isWhole = page === undefined || page.documents.length === payments;
  return isWhole || projector.status().differences > 0;
};

/** Opens the folder as a start does, asks for every payment, and verifies the whole log. */
const examine = async (
  folder: string,
  file: File,
  bodies: WholeFolder['bodies'],
): Promise<FolderCheck> => {
  let parts: Parts;
  try {
    parts = await openParts(folder);
  } catch (error) {
    const isOurs = error instanceof StoreUnavailable || error instanceof LogMisfit;
    return { kind: isOurs ? 'refused' : 'wrong', line: messageOf(error) };
  }
  const atOnce = await checkFolder(parts, bodies);
  const late = new Promise((resolve) => setTimeout(resolve, CAUGHT_UP_MS_MAX).unref());
  await Promise.race([parts.projector.caughtUp, late]);
  const later = atOnce.kind === 'wrong' ? atOnce : await checkFolder(parts, bodies);
  const isListed = () => checkList(parts, bodies.size);
  if (file.startsWith('read-models')) await until('the list is right, or not trusted', isListed);
  await parts.close();
  return later;
};

/** One image of the folder, damaged: what became of it. */
const meetDamage = async (
  whole: WholeFolder,
  n: number,
  random: Random,
): Promise<{ what: string; check: FolderCheck }> => {
  const image = temporaryFolder();
  const { name, file, damage } = DAMAGES[n % DAMAGES.length] as (typeof DAMAGES)[number];
  for (const one of FILES) copyFileSync(join(whole.path, one), join(image.path, one));
  const path = join(image.path, file);
  if (existsSync(path)) damage(path, random);
  const check = await examine(image.path, file, whole.bodies);
  image.remove();
  return { what: `image ${n}, ${name}`, check };
};

const IMAGES = Number(process.env.TEST_IMAGES ?? 208);
const PAYMENTS = 40;

test(`none of ${IMAGES} damaged data folders gives a wrong response without an error`, async () => {
  const random = randomOf();
  const whole = await makeWholeFolder(PAYMENTS);
  const counts = { right: 0, refused: 0, named: 0, wrong: 0 };
  const wrong: string[] = [];
  const nameless: string[] = [];
  for (let n = 0; n < IMAGES; n += 1) {
    const { what, check } = await meetDamage(whole, n, random);
    counts[check.kind] += 1;
    if (check.kind === 'wrong') wrong.push(`${what}: ${check.line}`);
    if (check.kind === 'refused' && !/events\.sqlite: |read models' checkpoint/.test(check.line))
      nameless.push(`${what}: ${check.line}`);
  }
  whole.remove();
  process.stderr.write(
    `damaged files: ${IMAGES} images, ${counts.right} right, ` +
      `${counts.named} named, ${counts.refused} refused at the start, ${counts.wrong} silently wrong\n`,
  );
  expect(wrong).toEqual([]);
  expect(nameless).toEqual([]);
  expect(Math.min(counts.right, counts.named, counts.refused)).toBeGreaterThan(0);
});
