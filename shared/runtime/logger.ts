/** What code is given to write lines with: their fields, then the message. The log itself is log.ts. */
export type Logger = {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
};
