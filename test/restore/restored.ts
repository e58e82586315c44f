/**
 * Histories of a merchant who repeats keys while the log is put back, the provider goes away and comes
 * back, and operators open the service: after every step the provider has moved no more than what the
 * responses admit (gaps §7, §17).
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { acknowledge, backUp, putBack } from '../support/put-back.ts';
import { type CommandResponse, type InProcess, token } from '../support/service-in-process.ts';

type Kind = 'create' | 'capture' | 'void' | 'refund';
/** What the merchant knows of one request under its key, by the last response that said anything. */
type Belief = 'moved' | 'not moved' | 'unknown';

/** An order and the requests of it; each has an amount of its own, by which the ledger shows it. */
type Order = { number: number; captureNow: boolean; paymentId?: string };

type Fault = 'not sent' | 'call lost' | 'answer lost';

export type Step =
  | { kind: Kind; order: number; fault?: Fault }
  | { kind: 'away' | 'back' | 'ledger away' | 'breaker' | 'back up' | 'put back' | 'acknowledge' };

/** Few, so that most requests are repeats; the second one is a sale. */
const ORDERS = 2;

const fault = fc.constantFrom<Fault | undefined>(
  undefined,
  undefined,
  'not sent',
  'not sent',
  'call lost',
  'answer lost',
);
const withFault = (met: Fault | undefined) => (met === undefined ? {} : { fault: met });

const request = fc
  .record({
    kind: fc.constantFrom<Kind>('create', 'create', 'capture', 'void', 'refund'),
    order: fc.nat({ max: ORDERS - 1 }),
    fault,
  })
  .map(({ fault: met, ...sent }): Step & { kind: Kind } => ({ ...sent, ...withFault(met) }));

const around: fc.Arbitrary<Step> = fc
  .constantFrom(
    'away' as const,
    'back' as const,
    'back' as const,
    'ledger away' as const,
    'breaker' as const,
    'back up' as const,
    'put back' as const,
    'acknowledge' as const,
  )
  .map((kind) => ({ kind }));

const step = fc.oneof({ weight: 3, arbitrary: request }, { weight: 1, arbitrary: around });
/** Mostly an operator opens the service at once. */
const opened = fc.constantFrom<Step[]>(
  [{ kind: 'acknowledge' }],
  [{ kind: 'acknowledge' }],
  [{ kind: 'away' }],
  [],
);

/** A history begins with work, a copy, more work and the copy put back; repeats of it; then anything. */
export const histories = (length: number): fc.Arbitrary<Step[]> =>
  fc
    .tuple(
      fc.array(request, { maxLength: 4 }),
      fc.array(request, { minLength: 2, maxLength: 6, size: 'max' }),
      opened,
      fc.array(fault, { minLength: 6, maxLength: 6 }),
      fc.array(step, { maxLength: length, size: 'max' }),
    )
    .map(([before, lost, open, faults, after]) => [
      ...before,
      { kind: 'back up' },
      ...lost,
      { kind: 'put back' },
      ...open,
      ...lost.map((sent, n) => ({ ...sent, ...withFault(faults[n]) })),
      ...after,
    ]);

const amountOf = (kind: Kind, { number }: Order): number =>
  ({ create: 1000, capture: 900, void: 1000, refund: 300 })[kind] + number;

const KINDS = { capture: 'CAPTURE', void: 'VOID', refund: 'REFUND' } as const;

/** `definite`: of how many requests the merchant was told that nothing moved. */
export type Seen = { steps: number; restores: number; definite: number; moved: number };

/** Runs one history on a service whose orders have numbers from `first` on. */
export const runHistory = async (
  service: InProcess,
  history: readonly Step[],
  first: number,
  seen: Seen,
): Promise<void> => {
  const orders = Array.from(
    { length: ORDERS },
    (_, n): Order => ({
      number: first + n,
      captureNow: n % 2 === 1,
    }),
  );
  const beliefs = new Map<string, Belief>();
  const nameOf = (kind: Kind, { number }: Order): string => `${kind} ${number}`;

  const send = (kind: Kind, order: Order): Promise<CommandResponse> => {
    const key = nameOf(kind, order).replace(' ', '-');
    const { captureNow, paymentId = 'pay_unknown' } = order;
    if (kind === 'create')
      return service.create({ captureNow, amount: amountOf(kind, order) }, { key });
    const body = kind === 'void' ? undefined : { amount: amountOf(kind, order) };
    return service.change(kind, paymentId, body, { key });
  };

  /** A 4xx and a 503 of the service's say nothing of what an earlier request under the key came to. */
  const believe = (kind: Kind, order: Order, { status, json }: CommandResponse): void => {
    const name = nameOf(kind, order);
    const said = String(json.details);
    if (status === 200) {
      beliefs.set(name, 'moved');
      if (kind === 'create') order.paymentId = json.paymentId;
    } else if (/nothing was (charged|changed)/.test(said)) {
      seen.definite += 1;
      beliefs.set(name, 'not moved');
    } else if (status === 503 && json.error === 'PROVIDER_UNAVAILABLE')
      beliefs.set(name, 'unknown');
  };

  const check = async (): Promise<void> => {
    const entries = (await service.ledger()).filter(({ outcome }) => outcome === 'APPROVED');
    for (const order of orders) {
      for (const kind of ['create', 'capture', 'void', 'refund'] as const) {
        const at = kind === 'create' ? (order.captureNow ? 'SALE' : 'AUTHORIZE') : KINDS[kind];
        const carriedOut = entries.filter(
          (one) => one.kind === at && one.amount === amountOf(kind, order),
        ).length;
        const belief = beliefs.get(nameOf(kind, order)) ?? 'not moved';
        const name = nameOf(kind, order);
        assert.ok(
          carriedOut <= (belief === 'not moved' ? 0 : 1),
          `${name}: ${belief}, ${carriedOut}`,
        );
        if (belief === 'moved') {
          assert.equal(carriedOut, 1, `${name}: moved, and not in the ledger`);
          seen.moved += 1;
        }
      }
    }
  };

  const take = async (one: Step): Promise<void> => {
    const { faults } = service;
    switch (one.kind) {
      case 'away':
        faults.away = true;
        return;
      case 'back':
        faults.away = false;
        faults.listsLedger = true;
        return;
      case 'ledger away':
        faults.listsLedger = false;
        return;
      case 'breaker':
        for (let n = 0; n < 5; n += 1) faults.next('not sent');
        for (let n = 0; n < 5; n += 1) await service.create({ amount: 1 });
        return;
      case 'back up':
        return backUp(service);
      case 'put back':
        seen.restores += 1;
        faults.forget();
        return putBack(service);
      case 'acknowledge':
        await acknowledge(service);
        return;
      default: {
        const order = orders[one.order] as Order;
        if (one.fault !== undefined) faults.next(one.fault);
        believe(one.kind, order, await send(one.kind, order));
        faults.forget();
      }
    }
  };

  backUp(service);
  for (const one of history) {
    await take(one);
    await check();
    seen.steps += 1;
  }
  const asking = { token: await token('*', 'ops:admin') };
  const { json } = await service.ask('GET', '/ops/v1/unresolved', undefined, asking);
  const states = (json.unresolved as { state: string }[]).map(({ state }) => state);
  assert.ok(
    !states.includes('CONTRADICTED'),
    'an outcome was recorded that the provider contradicts',
  );
};
