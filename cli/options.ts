/** A verb, and the options that several have. Values throw InvalidArgumentError for another text. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { isMoment } from '../shared/http/fields.ts';

const RUN = `Exit codes: 0 done, 1 failed, 2 wrong usage, 3 did not verify, or needs a person.
Environment: PAYMENTS_URL (else HOST, PORT) and PAYMENTS_TOKEN (else one is signed), and the settings.`;

/** Each example is a line that can be typed. */
export const verb = (name: string, ...examples: string[]): Command =>
  new Command(name).addHelpText('after', `${['\nExample:', ...examples].join('\n  ')}\n\n${RUN}`);

/** `pretty` for people, in a pipe too; `json` for programs. */
export type Format = 'pretty' | 'json';

/** The options that a verb was given: texts, which may be left out, and flags. */
export type Given<Texts extends string, Flags extends string = never> = {
  format: Format;
} & Partial<Record<Texts, string> & Record<Flags, true>>;

export const formatted = (name: string, ...examples: string[]): Command =>
  verb(name, ...examples).addOption(
    new Option('--format <format>', 'how to print').choices(['pretty', 'json']).default('pretty'),
  );

export const dataOption = (what = 'read this stopped data folder, and change nothing in it') =>
  new Option('--data <folder>', what);

export const keyOption = (): Option =>
  new Option(
    '--key <file>',
    'with --file: a public key of the seals, of any time (payments keys show)',
  );

const A_TIME = 'a time with its zone, such as 2026-11-01T00:00:00Z';

const timeOr =
  (must: string, form?: RegExp) =>
  (text: string): string => {
    if (isMoment(text) || form?.test(text)) return text;
    throw new InvalidArgumentError(`It must be ${must}.`);
  };

export const timeValue = timeOr(A_TIME);
export const timeOrRevision = timeOr(`a revision, or ${A_TIME}`, /^[0-9]{1,16}$/);
export const timeOrPosition = timeOr(
  `${A_TIME}, or a position, as each line of an export has one`,
  /^(start|[0-9/]+)$/,
);
