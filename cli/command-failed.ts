/** The exit code of a verb: 0 done, 1 failed, 2 wrong usage, 3 verification failed. */
type ExitCode = 0 | 1 | 2 | 3;

/** `message` is the line for the user, with what to do next. */
export class CommandFailed extends Error {
  override name = 'CommandFailed';
  readonly exitCode: ExitCode;
  constructor(message: string, exitCode: ExitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** The service gave no response: it cannot be reached, or the connection was lost. */
export class ServiceUnreachable extends CommandFailed {}

let misfit: string | undefined;

/** Notes why the log that a verb reads is not the one that was sealed last; the verb ends with exit code 3 for it. */
export const noteMisfit = (reason: string | undefined): void => {
  misfit = reason;
};

/** Throws CommandFailed, exit code 3, where a misfit was noted since the last call. */
export const failOnMisfit = (): void => {
  const reason = misfit;
  misfit = undefined;
  if (reason !== undefined) throw new CommandFailed(reason, 3);
};
