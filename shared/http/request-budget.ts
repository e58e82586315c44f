/** The time one request may take, waits included (gaps §11, `REQUEST_BUDGET_MS`). */
export type Budget = {
  leftMs(): number;
  /** The payment on which the intent of this request, or of the one that it joins, is durable. */
  begunOn?: string | undefined;
  appending?: boolean;
  /** The request has its response, without its outcome: no provider call may begin for it. */
  spent?: true;
  spend?: (() => void) | undefined;
};

/** The request's budget is spent. An operation that was begun goes on without it (gaps §7). */
export class BudgetSpent extends Error {
  override name = 'BudgetSpent';
}

export const startBudget = (totalMs: number, startMs: number = performance.now()): Budget => {
  const end = startMs + totalMs;
  const budget: Budget = {
    // A stop spends what is left: nothing is tried again then for a request that has its response.
    leftMs: () => (budget.spent === true ? 0 : Math.max(0, end - performance.now())),
  };
  return budget;
};

export type Waiting = Set<Budget>;

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
