/** What a verb ends with: 0 done, 1 failed, 2 wrong usage, 3 verification failed. */
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

/** No service answers at its address: nothing was sent, or no response came back. */
export class ServiceUnreachable extends CommandFailed {}
