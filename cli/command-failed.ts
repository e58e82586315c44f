/** A command could not do its work; `message` is the line for the user, with what to do next. */
export class CommandFailed extends Error {
  override name = 'CommandFailed';
}
