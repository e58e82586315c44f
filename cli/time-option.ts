/** The times that options take, with an example in what is said of any other text. */
import { InvalidArgumentError } from 'commander';
import { isMoment } from '../shared/http/date-time.ts';

const A_TIME = 'a time with its zone, such as 2026-11-01T00:00:00Z';

/** The value of an option that takes a time. Throws InvalidArgumentError for any other text. */
export const timeValue = (text: string): string => {
  if (isMoment(text)) return text;
  throw new InvalidArgumentError(`It must be ${A_TIME}.`);
};

/** The value of an option that takes a time or a payment's revision. Throws InvalidArgumentError for any other text. */
export const timeOrRevision = (text: string): string => {
  if (isMoment(text) || /^[0-9]{1,16}$/.test(text)) return text;
  throw new InvalidArgumentError(`It must be a revision, or ${A_TIME}.`);
};

/**
 * The value of an option that takes a time or a place of the log: `start`, or a position, which is made
 * of digits in every store. Throws InvalidArgumentError for any other text, such as a day alone.
 */
export const timeOrPosition = (text: string): string => {
  if (isMoment(text) || /^(start|[0-9/]+)$/.test(text)) return text;
  throw new InvalidArgumentError(
    `It must be ${A_TIME}, or a position, as each line of an export has one.`,
  );
};
