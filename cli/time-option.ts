/** The times that options take, with an example in what is said of any other text. */
import { InvalidArgumentError } from 'commander';

const TIME = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;
const A_TIME = 'a time with its zone, such as 2026-11-01T00:00:00Z';

/** Whether a text has the form of an RFC 3339 time; the service checks the day and the hour in it. */
export const isTime = (text: string): boolean => TIME.test(text);

/** The value of an option that takes a time. Throws InvalidArgumentError for any other text. */
export const timeValue = (text: string): string => {
  if (isTime(text)) return text;
  throw new InvalidArgumentError(`It must be ${A_TIME}.`);
};

/** The value of an option that takes a time or a payment's revision. Throws InvalidArgumentError for any other text. */
export const timeOrRevision = (text: string): string => {
  if (isTime(text) || /^[0-9]{1,16}$/.test(text)) return text;
  throw new InvalidArgumentError(`It must be a revision, or ${A_TIME}.`);
};

/**
 * The value of an option that takes a time or a place of the log: `start`, or a position, which is made
 * of digits in every store. Throws InvalidArgumentError for any other text, such as a day alone.
 */
export const timeOrPosition = (text: string): string => {
  if (isTime(text) || /^(start|[0-9/]+)$/.test(text)) return text;
  throw new InvalidArgumentError(
    `It must be ${A_TIME}, or a position, as each line of an export has one.`,
  );
};
