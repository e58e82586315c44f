/** The time one request may take, waits included (gaps §11, `REQUEST_BUDGET_MS`). */
export type Budget = {
  /** Milliseconds that are left; 0 when it is spent. */
  leftMs(): number;
  /** The payment on which this request's own intent is durable, once it is. */
  begunOn?: string;
  /** True while this request's own intent is being appended. */
  appending?: boolean;
  /** The request has its response, without its outcome: no provider call may begin for it. */
  spent?: true;
};

/** The request's budget is spent. An operation that was begun goes on without it (gaps §7). */
export class BudgetSpent extends Error {
  override name = 'BudgetSpent';
}

/** A budget of `totalMs` from `startMs` on, a time of the monotonic clock; from now on where left out. */
export const startBudget = (totalMs: number, startMs: number = performance.now()): Budget => {
  const end = startMs + totalMs;
  return { leftMs: () => Math.max(0, end - performance.now()) };
};

/** What ends the wait of each request that waits for its command. */
export type Waiting = Set<() => void>;

/** The task's result, or BudgetSpent; the task itself is not stopped. */
export const withinBudget = async <T>(
  task: Promise<T>,
  budget: Budget,
  waiting: Waiting,
): Promise<T> => {
  const { promise: spent, reject } = Promise.withResolvers<never>();
  const spend = (): void => {
    budget.spent = true;
    reject(new BudgetSpent());
  };
  const timer = setTimeout(spend, budget.leftMs());
  waiting.add(spend);
  try {
    return await Promise.race([task, spent]);
  } finally {
    clearTimeout(timer);
    waiting.delete(spend);
  }
};
