/** `npm run bench -- --scale`: the same requests over logs of growing size, and what ten million would cost. */
import { fillFolder } from './fill.ts';
import type { Findings } from './page.ts';
import { type Outcome, outcomesBad } from './rounds.ts';
import {
  besideScans,
  bytesOnDisk,
  catchUp,
  commandRate,
  REBUILD,
  rssAfterCreates,
  VERIFY,
} from './scale-steps.ts';
import { curvePicture, curveText, type End, type Rates, type Size } from './scale-text.ts';
import { type Cpus, type Server, startServer } from './server.ts';
import { loadsOf, startsToReady, warmUp } from './service.ts';
import { inTurns, type Report } from './turns.ts';
import {
  bytesOf,
  getOrder,
  openWorkplace,
  serviceOrder,
  startBare,
  type Workplace,
} from './workplace.ts';

const LATEST = 1000;
const CREATES_FOR_MEMORY = 100_000;
/** Shorter rounds are for trying the bench: a hundred thousand creates would take longer than all of it. */
const SECONDS_FOR_MEMORY = 3;

type Name = 'create' | 'GET' | 'GET of the latest';

const measureAt = async (
  workplace: Workplace,
  ids: readonly string[],
  report: Report,
): Promise<{ outcomes: Record<Name, Outcome>; rssBytes: number }> => {
  const servers: Server[] = [];
  try {
    const service = await startServer(serviceOrder(workplace));
    servers.push(service);
    const bare = await startBare(workplace, await bytesOf(workplace, service.url, ids[0] ?? ''));
    servers.push(bare);
    const [create, get] = loadsOf(workplace, service, bare, ids);
    const latest = {
      ...get,
      name: 'GET of the latest' as const,
      order: () => getOrder(workplace, service.url, ids.slice(-LATEST)),
    };
    await warmUp([create, get, latest]);
    const outcomes = await inTurns<Name>([create, get, latest], report);
    return { outcomes, rssBytes: (await service.usage()).rssBytes };
  } finally {
    for (const server of servers) await server.stop();
  }
};

const fill = async (workplace: Workplace, ids: string[], size: number, report: Report) => {
  const step = Math.max(Math.round(size / 10), 10_000);
  const from = ids.length;
  const more = await fillFolder(workplace.dataDir, size - from, (done) => {
    if (done % step < 512) report(`filling: ${from + done} of ${size} payments`);
  });
  // One by one: a million arguments of one call would not fit on the stack.
  for (const id of more) ids.push(id);
};

/** A step beside a service that has done nothing else since its start. */
const withService = async <T>(
  workplace: Workplace,
  cpus: Cpus,
  step: (service: Server) => Promise<T>,
): Promise<T> => {
  const service = await startServer({ ...serviceOrder(workplace), cpus });
  try {
    return await step(service);
  } finally {
    await service.stop();
  }
};

/** How many events a second the commands go through that read the whole log. */
const ratesOf = (workplace: Workplace, cpus: 0 | 'both', report: Report): Promise<Rates> =>
  withService(workplace, cpus, async (service) => {
    const on = cpus === 'both' ? 'both CPUs' : 'one CPU';
    report(`verifying the whole log on ${on}`);
    const verifiedPerSecond = await commandRate(workplace, service, VERIFY);
    report(`rebuilding the read models on ${on}`);
    const rebuiltPerSecond = await commandRate(workplace, service, REBUILD);
    return { verifiedPerSecond, rebuiltPerSecond };
  });

/** What is measured once, over the largest log. */
const atTheEnd = async (
  workplace: Workplace,
  ids: readonly string[],
  report: Report,
): Promise<End> => {
  report('GETs beside requests that scan');
  const scans = await withService(workplace, 0, (service) => besideScans(workplace, service, ids));
  const onBoth = await ratesOf(workplace, 'both', report);
  const onOne = await ratesOf(workplace, 0, report);
  if (workplace.seconds < SECONDS_FOR_MEMORY) return { scans, onBoth, onOne, rssBytes: undefined };
  report(`${CREATES_FOR_MEMORY} creates, for the memory after them`);
  const rssBytes = await withService(workplace, 0, (service) =>
    rssAfterCreates(workplace, service, CREATES_FOR_MEMORY),
  );
  return { scans, onBoth, onOne, rssBytes };
};

const ratesBad = (rates: readonly Rates[]): number =>
  rates.flatMap((one) => [one.verifiedPerSecond, one.rebuiltPerSecond]).filter(Number.isNaN).length;

/** Runs the bench at each size, in ascending order. Throws Error when a server does not start. */
export const benchScale = async (
  seconds: number,
  sizes: readonly number[],
  report: Report,
): Promise<Findings & { bad: number }> => {
  const workplace = openWorkplace(seconds);
  const ids: string[] = [];
  const found: Size[] = [];
  let bad = 0;
  try {
    for (const size of sizes) {
      const before = ids.length;
      await fill(workplace, ids, size, report);
      const { projectedPerSecond } = await catchUp(workplace, 2 * (size - before));
      report(`${size} payments: ${Math.round(projectedPerSecond)} events/s into the read models`);
      const readyMs = await startsToReady(workplace);
      const { outcomes, rssBytes } = await measureAt(workplace, ids, report);
      bad += outcomesBad(outcomes);
      const bytes = bytesOnDisk(workplace.dataDir);
      found.push({ size, ...outcomes, readyMs, rssBytes, projectedPerSecond, bytes });
    }
    const end = await atTheEnd(workplace, ids, report);
    return {
      name: 'scale',
      text: curveText(found, end),
      pictures: { 'scale.svg': curvePicture(found) },
      // A log that does not verify, or read models that cannot be rebuilt, are no result to pass over.
      bad: bad + ratesBad([end.onBoth, end.onOne]),
    };
  } finally {
    workplace.remove();
  }
};
