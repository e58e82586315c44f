/** What a verb has learned of the log beside what it shows: it ends with exit code 3 for it. */
import { CommandFailed } from './command-failed.ts';

let misfit: string | undefined;

/** Notes why the log that is read is not the one that was sealed last; undefined where it is. */
export const noteMisfit = (reason: string | undefined): void => {
  misfit = reason;
};

/** Throws CommandFailed, exit code 3, where a misfit was noted since the last call. */
export const failOnMisfit = (): void => {
  const reason = misfit;
  misfit = undefined;
  if (reason !== undefined) throw new CommandFailed(reason, 3);
};
