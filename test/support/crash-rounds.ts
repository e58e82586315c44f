/**
 * Dies at one point after another, each time restarting on the same data folder, and holds each
 * time that the repeat of what was under way is answered and that the money moved once.
 */
import { expect } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import type { CrashPoint, Operation } from './crash-points.ts';
import { expectLedgerMatchesLog, type LoggedPayment } from './ledger-and-log.ts';
import { opening } from './opening-provider.ts';
import { type Client, type CommandResponse, unresolvedIn } from './service-client.ts';
import { type StartedInProcess, startInProcess } from './service-in-process.ts';
import { LAUNCHER, NODE, type Service, startService } from './service-processes.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { until } from './until.ts';

const PAYMENTS = '/api/v1/payments';
const APPROVED = '4242424242424242';
const RESPONSE_LOST = '4000000000004236';
const CALL_LOST = '4000000000004228';
/** Recovery asks at once and then again soon. */
const ENV = { LOG_LEVEL: 'silent', RECOVERY_DELAYS_MS: '50,50,50,100,100,200,500,1000' };

/** What is under way when the process dies: the request, to be sent again under its key. */
export type UnderWay = {
  /** `operation: where`, for example `capture: after provider`. */
  point: string;
  path: string;
  body: object;
  key: Record<string, string>;
  /** The statuses that the repeat may have. */
  ends: readonly number[];
};

const body = (reference: string, fields: object = {}, number = APPROVED) => ({
  ...payment,
  ...fields,
  merchantReference: reference,
  paymentMethod: { type: 'CARD', card: { ...payment.paymentMethod.card, number } },
});

/** Starts a process that dies at the point of `CRASH_AT`: at once, or once it is armed. */
export const startDying = (dataDir: string, env: NodeJS.ProcessEnv): Promise<Service> =>
  startService({
    dataDir,
    env: { ...ENV, ...env },
    command: [NODE, LAUNCHER, 'test/support/crashing-main.ts'],
  });

const start = (dataDir: string, point: CrashPoint | undefined): Promise<Service> =>
  startDying(dataDir, { OPENS: 'first', CRASH_ARMED: 'later', ...(point && { CRASH_AT: point }) });

export const expectDead = async (service: Service, point: string): Promise<void> =>
  expect([point, (await service.exited).signal]).toEqual([point, 'SIGKILL']);

/** From now on a process dies at its point. */
export const arm = async (service: Service): Promise<void> => {
  service.kill('SIGUSR2');
  await until('it is armed', () => service.stderr().includes('armed'));
};

/** What no crash follows is the service in this process. */
const startLast = (dataDir: string): Promise<StartedInProcess> =>
  startInProcess({ dataDir, env: { ...ENV, OPENS: 'first' }, wrappers: { provider: opening } });

/** The payment that the operation is about, made before the process is to die. */
const prepared = async (service: Service, operation: Operation, reference: string) => {
  if (operation === 'authorize' || operation === 'sale' || operation === 'recovery') return '';
  const fields = { captureNow: operation === 'refund' };
  const key = { 'idempotency-key': `prepared-${reference}` };
  const made = await service.post(PAYMENTS, body(reference, fields), key);
  if (made.status !== 200) throw new Error(`not prepared: ${made.text}`);
  return made.json.paymentId;
};

/** Prepares what the operation needs, and gives its request. */
export const underWay = async (
  service: Service,
  point: string,
  operation: Operation,
  reference: string,
  number?: string,
): Promise<UnderWay> => {
  const paymentId = await prepared(service, operation, reference);
  const is = { point, key: { 'idempotency-key': reference }, ends: [200] };
  if (paymentId !== '') return { ...is, path: `${PAYMENTS}/${paymentId}/${operation}`, body: {} };
  const captureNow = operation === 'sale';
  return { ...is, path: PAYMENTS, body: body(reference, { captureNow }, number) };
};

/** What is lost for recovery to find, and the statuses of its repeat. */
const lost = (point: CrashPoint): { number: string; ends: readonly number[] } =>
  // What never reaches the provider ends unknown again when it is repeated.
  point.endsWith('fence')
    ? { number: CALL_LOST, ends: [503] }
    : { number: RESPONSE_LOST, ends: [200] };

const underWayAt = async (
  service: Service,
  point: CrashPoint,
  reference: string,
): Promise<UnderWay> => {
  const [operation] = point.split(': ') as [Operation];
  if (operation !== 'recovery') return underWay(service, point, operation, reference);
  const { number, ends } = lost(point);
  return { ...(await underWay(service, point, operation, reference, number)), ends };
};

export const send = (
  service: Client,
  { path, body: sent, key }: UnderWay,
): Promise<CommandResponse> => service.post(path, sent, key);

/** Sends it once more to a service that lives: its answer is that of the one operation. */
export const repeat = async (service: Client, was: UnderWay): Promise<void> => {
  const response = await send(service, was);
  if (!was.ends.includes(response.status)) {
    throw new Error(`${was.point}: the repeat got ${response.status} ${response.text}`);
  }
  if (response.status !== 200) return;
  const again = await send(service, was);
  expect([was.point, again.text]).toEqual([was.point, response.text]);
};

/** Its repeat gets its response, and nothing stays unresolved. */
const recover = async (alive: Client & { url: string }, was: UnderWay): Promise<void> => {
  await repeat(alive, was);
  await until(`all is resolved after ${was.point}`, async () => (await unresolvedIn(alive)) === 0);
};

/** How often each kind of operation was approved, by the merchant's reference. */
const approvedIn = (payments: ReadonlyMap<string, LoggedPayment>): Map<string, number> => {
  const approved = new Map<string, number>();
  for (const { state, body: shown } of payments.values()) {
    const { merchantReference } = JSON.parse(shown) as { merchantReference: string };
    for (const { kind, ended } of state.operations) {
      if (ended?.outcome !== 'APPROVED') continue;
      const name = `${kind} ${merchantReference}`;
      approved.set(name, (approved.get(name) ?? 0) + 1);
    }
  }
  return approved;
};

/** One approved operation of its kind for each request, whatever attempts it took. */
export const expectMovedOnce = (
  dead: readonly UnderWay[],
  payments: ReadonlyMap<string, LoggedPayment>,
): void => {
  const approved = approvedIn(payments);
  for (const { point, key, ends } of dead) {
    const reference = key['idempotency-key'] ?? '';
    const [operation = ''] = point.split(': ');
    const kind = operation.replace(/recovery|authorize|sale/, 'create');
    const moved = approved.get(`${kind} ${reference}`) ?? 0;
    expect([point, moved]).toEqual([point, ends.includes(200) ? 1 : 0]);
  }
};

/** Dies at each of the points and holds M1-M6 and L1 after each; gives how often it died. */
export const surviveCrashes = async (points: readonly CrashPoint[]): Promise<number> => {
  using folder = temporaryFolder();
  const dataDir = folder.path;
  const dead: UnderWay[] = [];
  let service: Service | undefined;
  try {
    service = await start(dataDir, points[0]);
    for (const [at, point] of points.entries()) {
      const was = await underWayAt(service, point, `crash-${at}`);
      await arm(service);
      // It may have died with the answer on its way: that is one of the points.
      await send(service, was).catch(() => undefined);
      await expectDead(service, point);
      dead.push(was);
      // What recovers from this one is what dies at the next one.
      const next = points[at + 1];
      if (next === undefined) break;
      service = await start(dataDir, next);
      await recover(service, was);
    }
    await using last = await startLast(dataDir);
    for (const was of dead.slice(-1)) await recover(last, was);
    await last[Symbol.asyncDispose]();
    expectMovedOnce(dead, await expectLedgerMatchesLog(dataDir));
    return dead.length;
  } finally {
    await service?.[Symbol.asyncDispose]();
  }
};
