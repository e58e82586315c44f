/**
 * When an unresolved payment is asked about again (decisions §7): at once, after each wait of the
 * ladder, then hourly; so many at a time, and each wait a little shorter or longer than its step,
 * so that what broke at once does not ask at once.
 */

/** `open`: still unresolved. `none`: nothing is open any more. `in flight`: too early to ask. */
export type Tried = { kind: 'open' } | { kind: 'none' } | { kind: 'in flight'; leftMs: number };

export type Ladder = {
  /** How often it was asked for in vain. */
  tries: number;
  /** Wall clock of the next try; undefined while one waits for its turn or runs. */
  nextTryAtMs: number | undefined;
};

export type Ladders = {
  /** Begins a ladder with a try at once; one that runs already is left alone. */
  begin(paymentId: string): void;
  /** Begins it anew, also where one runs: something else of the payment is unresolved. */
  beginAnew(paymentId: string): void;
  /** Ends it. */
  end(paymentId: string): void;
  get(paymentId: string): Ladder | undefined;
  /** Ends all, and lets none begin. */
  stop(): void;
};

export type LaddersOptions = {
  /** Waits between tries, in milliseconds; after the last one, hourly (`RECOVERY_DELAYS_MS`). */
  delaysMs: readonly number[];
  nowMs: () => number;
  /** One try. What it throws counts as a try in vain. */
  attempt(paymentId: string): Promise<Tried>;
  /** After a try in vain. */
  onVain(paymentId: string, ladder: { tries: number; nextTryMs: number; error?: unknown }): void;
};

const HOUR_MS = 3_600_000;
/** How many payments are asked about at once. */
const AT_ONCE_MAX = 8;
/** Above it none begins: the sweep finds what is left out, once there is room. */
export const LADDERS_MAX = 100_000;

type Running = Ladder & { timer?: NodeJS.Timeout; queued: boolean };

const jittered = (delayMs: number): number => delayMs * (0.9 + Math.random() * 0.2);

export const createLadders = (options: LaddersOptions): Ladders => {
  const { delaysMs, nowMs, attempt, onVain } = options;
  const ladders = new Map<string, Running>();
  const waiting: string[] = [];
  let running = 0;
  let stopped = false;

  const tryIn = (paymentId: string, ladder: Running, delayMs: number): void => {
    clearTimeout(ladder.timer);
    ladder.nextTryAtMs = nowMs() + delayMs;
    ladder.timer = setTimeout(() => enqueue(paymentId, ladder), delayMs).unref();
  };

  const climb = (paymentId: string, ladder: Running, error?: unknown): void => {
    ladder.tries += 1;
    const nextTryMs = jittered(delaysMs[ladder.tries - 1] ?? HOUR_MS);
    tryIn(paymentId, ladder, nextTryMs);
    onVain(paymentId, { tries: ladder.tries, nextTryMs, ...(error !== undefined && { error }) });
  };

  const tryOnce = async (paymentId: string): Promise<void> => {
    const ladder = ladders.get(paymentId);
    if (ladder === undefined) return;
    ladder.queued = false;
    const tried = await attempt(paymentId).catch((error: unknown) => ({ error }));
    // Begun anew, or ended, meanwhile: then this try has nothing more to say.
    if (ladders.get(paymentId) !== ladder || ladder.queued || stopped) return;
    if ('error' in tried) climb(paymentId, ladder, tried.error);
    else if (tried.kind === 'none') end(paymentId);
    else if (tried.kind === 'open') climb(paymentId, ladder);
    else tryIn(paymentId, ladder, tried.leftMs + jittered(PAST_FLIGHT_MS));
  };

  const drain = (): void => {
    while (running < AT_ONCE_MAX) {
      const paymentId = waiting.shift();
      if (paymentId === undefined) return;
      running += 1;
      void tryOnce(paymentId).finally(() => {
        running -= 1;
        drain();
      });
    }
  };

  const enqueue = (paymentId: string, ladder: Running): void => {
    if (ladder.queued) return;
    clearTimeout(ladder.timer);
    ladder.nextTryAtMs = undefined;
    ladder.queued = true;
    waiting.push(paymentId);
    drain();
  };

  const begin: Ladders['begin'] = (paymentId) => {
    if (stopped || ladders.has(paymentId) || ladders.size >= LADDERS_MAX) return;
    const ladder: Running = { tries: 0, nextTryAtMs: undefined, queued: false };
    ladders.set(paymentId, ladder);
    enqueue(paymentId, ladder);
  };

  const end: Ladders['end'] = (paymentId) => {
    clearTimeout(ladders.get(paymentId)?.timer);
    ladders.delete(paymentId);
  };

  return {
    begin,
    beginAnew: (paymentId) => {
      const ladder = ladders.get(paymentId);
      if (ladder === undefined) return begin(paymentId);
      ladder.tries = 0;
      enqueue(paymentId, ladder);
    },
    end,
    get: (paymentId) => ladders.get(paymentId),
    stop: () => {
      stopped = true;
      for (const paymentId of [...ladders.keys()]) end(paymentId);
    },
  };
};

/** How long after another's call must have ended it is looked at, about. */
const PAST_FLIGHT_MS = 100;
