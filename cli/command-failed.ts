/** The exit code of a verb: 0 done, 1 failed, 2 wrong usage, 3 verification failed. */
type ExitCode = 0 | 1 | 2 | 3;

/** A command could not do its work; `message` is the line for the user, with what to do next. */
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
