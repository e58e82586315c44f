/**
 * The words of the last column of docs/glossary.md are gone. A word that has no other meaning is
 * searched for in all text; a word with an ordinary meaning as well is searched for in the
 * identifiers of the code alone, part by part: `askedAt` and `ASKED_MAX` both hold `asked`.
 */
import { expect, test } from '@jest/globals';
import { projectFiles, textOf } from '../support/project-files.ts';

/**
 * The glossary and the changelog name the old words, and so do old events and what reads them; the
 * other four pages are the contract's.
 */
const PAGES_OF_THEIR_OWN = [
  'docs/glossary.md',
  'docs/interface.md',
  'docs/decisions/contract-gaps.md',
  'docs/settings.md',
  'docs/provider.md',
  'CHANGELOG.md',
  'test/docs/glossary.test.ts',
  'shared/payment/upcast.ts',
  'test/payment/stored-events/PaymentAuthorized.v1.old-names.json',
  'test/payment/stored-events/PaymentRefundDeclined.v1.old-names.json',
];
const CODE = /\.(ts|js|cjs|mjs)$/;
/** What runs in production; tests, scripts and pages measure and show figures. */
const SERVICE =
  /^(shared|providers|webhooks|topics|audit|command-api|projector|query-api|embedded|cli)\/.*\.ts$/;

/** A relative clause, or a pronoun, in the place of the one who acts. */
const FOREIGN = /\bfor who\b|\b(nobody|somebody|whoever)\b/i;

type Rule = { say: string; not: RegExp; in?: RegExp };

const IN_TEXT: readonly Rule[] = [
  { say: 'resolve', not: /(?<!all)settl(e|es|ed|ing|ement|ements)(?![a-z])|unsettled/i },
  { say: 'outcome', not: /\b(fates?|verdicts?)\b/i },
  // SQL has a keyword of that name.
  {
    say: 'read model',
    not: /(?<!CREATE OR REPLACE )\bviews?(?![a-z-])|\b(un)?viewed\b|document stores?\b/i,
  },
  { say: 'parked', not: /dead[ _-]?letter/i },
  { say: 'deps', not: /\b[Hh]ouses?\b|\brooms\b|\b(its|each|every|one|two) room\b/ },
  { say: 'in flight, or idle', not: /(?<!--)\bquiet(ly)?\b/i },
  { say: 'retry schedule, attempt', not: /\bladders?\b|NO_LADDER|\bclimb(s|ed|ing)?\b/i },
  { say: 'circuit breaker, bulkhead, timeout', not: /\bdoors?\b|\bknock(s|ed|ing)?\b/i },
  { say: 'authenticate hook, timeout', not: /\bguard(s|ed|ing)?\b/i },
  { say: 'metrics', not: /\bfigures\b/i, in: SERVICE },
  {
    say: 'who does it',
    not: FOREIGN,
    in: /^(docs|README|CONTRIBUTING).*\.md$|\.(ts|js|cjs|mjs|yaml)$/,
  },
];

const IN_IDENTIFIERS: readonly { say: string; not: readonly string[] }[] = [
  { say: 'resolve', not: ['settle', 'settles', 'settled', 'settling', 'settlement', 'unsettled'] },
  { say: 'outcome', not: ['fate', 'fates', 'verdict', 'verdicts'] },
  { say: 'read model', not: ['view', 'views'] },
  { say: 'request, response, reject', not: ['asked', 'answer', 'answers', 'answered', 'told'] },
  { say: 'deps', not: ['room', 'rooms', 'house', 'houses'] },
  { say: 'in flight', not: ['quiet'] },
  { say: 'retry schedule, attempt', not: ['ladder', 'ladders', 'climb', 'climbs'] },
  {
    say: 'circuit breaker, timeout',
    not: ['door', 'doors', 'knock', 'guard', 'guards', 'guarded'],
  },
  { say: 'metrics', not: ['figure', 'figures'] },
  { say: 'merchant, actor, principal', not: ['caller', 'callers', 'owner', 'owners'] },
];

/** What the platform and libraries name themselves. */
const NAMED_BY_OTHERS = new Set(['allSettled', 'DataView', 'UseGuards']);
/** Comments, texts and regular expressions hold no identifiers. */
const NO_IDENTIFIERS = new RegExp(
  [
    String.raw`/\*[\s\S]*?\*/`,
    String.raw`//[^\n]*`,
    String.raw`'(?:\\.|[^'\\\n])*'`,
    String.raw`"(?:\\.|[^"\\\n])*"`,
    '`(?:\\\\.|[^`\\\\])*`',
    String.raw`(?<=[(,=:[!&|?{};]\s*)/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n])+/[a-z]*`,
  ].join('|'),
  'g',
);
const blank = (text: string): string => text.replace(/[^\n]/g, ' ');
const IDENTIFIER = /[A-Za-z_$][\w$]*/g;

type Line = [place: string, line: string];

/** The lines of a file that hold what the pattern matches; as a whole most files hold none. */
const linesWith = (pattern: RegExp, path: string, text: string): Line[] =>
  pattern.test(text)
    ? text
        .split('\n')
        .map((line, index): Line => [`${path}:${index + 1}`, line])
        .filter(([, line]) => pattern.test(line))
    : [];

const files = projectFiles.filter((path) => !PAGES_OF_THEIR_OWN.includes(path));
const texts = new Map(files.map((path) => [path, textOf(path)]));

test.each(IN_TEXT)('text: say "$say"', ({ not, in: where = /./ }) => {
  const found = files
    .filter((path) => where.test(path))
    .flatMap((path) => linesWith(not, path, texts.get(path) ?? ''));
  expect(found.map(([place, line]) => `${place} ${line.trim().slice(0, 100)}`)).toEqual([]);
});

const code = new Map(
  files
    .filter((path) => CODE.test(path))
    .map((path) => [path, (texts.get(path) ?? '').replace(NO_IDENTIFIERS, blank)]),
);
const identifiers = [...new Set([...code.values()].flatMap((text) => text.match(IDENTIFIER) ?? []))]
  .filter((name) => !NAMED_BY_OTHERS.has(name))
  .map((name) => ({
    name,
    parts: name.split(/(?<=[a-z0-9])(?=[A-Z])|_/).map((part) => part.toLowerCase()),
  }));

test.each(IN_IDENTIFIERS)('identifiers: say "$say"', ({ not }) => {
  const found = identifiers
    .filter(({ parts }) => parts.some((part) => not.includes(part)))
    .flatMap(({ name }) => {
      const named = new RegExp(String.raw`(?<![\w$])${name.replaceAll('$', '\\$')}(?![\w$])`);
      return [...code].flatMap(([path, text]) => linesWith(named, path, text));
    });
  expect(found.map(([place, line]) => `${place} ${line.trim().slice(0, 100)}`)).toEqual([]);
});

test('names of files follow the same words', () => {
  const words = new Set(IN_IDENTIFIERS.flatMap(({ not }) => not));
  const named = files.filter((path) => CODE.test(path));
  const found = named.filter((path) => path.split(/[/.-]/).some((part) => words.has(part)));
  expect(found).toEqual([]);
});
