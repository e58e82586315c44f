/** The time one request may take, waits included (gaps §11, `REQUEST_BUDGET_MS`). */
export type Budget = {
  /** Milliseconds that are left; 0 when it is spent. */
  leftMs(): number;
  /** The payment on which this request's own intent is durable, once it is. */
  begunOn?: string | undefined;
  /** True while this request's own intent is being appended. */
  appending?: boolean;
  /** The request has its response, without its outcome: no provider call may begin for it. */
  spent?: true;
  /** Ends the request's wait for its command, while it waits. */
  spend?: (() => void) | undefined;
};

/** The request's budget is spent. An operation that was begun goes on without it (gaps §7). */
export class BudgetSpent extends Error {
  override name = 'BudgetSpent';
}

/** `startMs` is a time of the monotonic clock. */
export const startBudget = (totalMs: number, startMs: number = performance.now()): Budget => {
  const end = startMs + totalMs;
  const budget: Budget = {
    // A stop spends what is left: nothing is tried again then for a request that has its response.
    leftMs: () => (budget.spent === true ? 0 : Math.max(0, end - performance.now())),
  };
  return budget;
};

/** The budgets of the requests that wait for their command. */
export type Waiting = Set<Budget>;

/** The task's result, or BudgetSpent; the task itself is not stopped. */
export const withinBudget = async <T>(
  task: Promise<T>,
  budget: Budget,
  waiting: Waiting,
): Promise<T> => {
  const { promise: spent, reject } = Promise.withResolvers<never>();
  budget.spend = () => {
    budget.spent = true;
    reject(new BudgetSpent());
  };
  const timer = setTimeout(budget.spend, budget.leftMs());
  waiting.add(budget);
  try {
    return await Promise.race([task, spent]);
  } finally {
    clearTimeout(timer);
    waiting.delete(budget);
    // A grown set may hold the budget until a full collection (ADR-0112): it lets go of the wait.
    budget.spend = undefined;
  }
};
