/** Every citation leads somewhere: decisions, sections of the gaps page, invariants, links and paths. */
import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { projectFiles, textOf } from '../support/project-files.ts';
import { ROOT } from '../support/service-processes.ts';

const THIS = 'test/docs/citations.test.ts';
const files = projectFiles.filter((path) => path !== THIS);
const pages = files.filter((path) => path.endsWith('.md'));

const headings = (path: string): string[] =>
  [...textOf(path).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading ?? '');

const decisions = new Set(
  files.flatMap((path) => /^docs\/decisions\/(\d{4})-/.exec(path)?.[1] ?? []),
);
const sections = new Set(
  headings('docs/decisions/contract-gaps.md').flatMap((text) => /^(\d+)\. /.exec(text)?.[1] ?? []),
);
const invariants = new Set(
  [...textOf('docs/invariants.md').matchAll(/^- \*\*([A-Z]\d)\*\*/gm)].map(([, number]) => number),
);

/** `file:line citation` of each citation that leads to nothing. */
const lost = (
  paths: readonly string[],
  citation: RegExp,
  found: (cited: string, path: string) => boolean,
): string[] =>
  paths.flatMap((path) =>
    textOf(path)
      .split('\n')
      .flatMap((line, index) =>
        [...line.matchAll(citation)]
          .filter(([, cited = '']) => !found(cited, path))
          .map(([whole]) => `${path}:${index + 1} ${whole}`),
      ),
  );

/** The anchor that a heading gets on a page. */
const anchor = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

const leads = (target: string, from: string): boolean => {
  if (/^[a-z]+:/.test(target)) return true;
  const [file = '', fragment] = target.split('#');
  const path = file === '' ? from : normalize(join(dirname(from), file));
  if (!existsSync(join(ROOT, path))) return false;
  return fragment === undefined || headings(path).some((text) => anchor(text) === fragment);
};

describe('a citation leads to what it cites', () => {
  test('ADR-0016: a page of docs/decisions', () => {
    expect(lost(files, /ADR-(\d+)/g, (number) => decisions.has(number))).toEqual([]);
  });

  test('gaps §8: a section of docs/decisions/contract-gaps.md', () => {
    expect(lost(files, /gaps §(\d+)/g, (number) => sections.has(number))).toEqual([]);
    expect(lost(files, /(decisions §|contract gaps §)/g, () => false)).toEqual([]);
  });

  test('M3: an invariant of docs/invariants.md', () => {
    const texts = files.filter((path) => /\.(ts|cjs|md|ya?ml)$/.test(path));
    const cited = /(?<![\w.'/%-])([MLPSAV]\d)(?![\w.'/%-])/g;
    expect(lost(texts, cited, (number) => invariants.has(number))).toEqual([]);
  });
});

test('every link of a page leads to a file, and to a heading where it names one', () => {
  expect(lost(pages, /\]\(([^)\s]+)\)/g, leads)).toEqual([]);
});

test('every path that a page or a comment names exists', () => {
  const top =
    'shared|providers|webhooks|topics|audit|command-api|projector|query-api|embedded|cli|scripts|test|docs|ops';
  const path = new RegExp(
    `(?<![\\w/.(-])((?:${top}|examples)/[\\w./-]*\\.(?:ts|cjs|mjs|md|json|ya?ml))(?!\\w)`,
    'g',
  );
  const checked = files.filter((file) => file !== 'CHANGELOG.md');
  expect(lost(checked, path, (named) => existsSync(join(ROOT, named)))).toEqual([]);
});

describe('the pages of docs/decisions', () => {
  const names = files.flatMap((path) => /^docs\/decisions\/(\d{4}-.+\.md)$/.exec(path)?.[1] ?? []);
  const index = 'docs/decisions/README.md';

  test('the index is a list of links, each with the number and the title of its page', () => {
    const listed = textOf(index)
      .split('\n')
      .filter((line) => line.startsWith('- '));
    const titleOf = (name: string): string => headings(`docs/decisions/${name}`)[0] ?? '';
    expect(listed.sort()).toEqual(names.map((name) => `- [${titleOf(name)}](${name})`).sort());
    expect(names.filter((name) => !titleOf(name).startsWith(`${name.slice(0, 4)}: `))).toEqual([]);
    expect(new Set(names.map((name) => name.slice(0, 4))).size).toBe(names.length);
  });

  test('every decision is cited outside of the index and of its page', () => {
    const isCited = (name: string): boolean => {
      const others = files.filter((path) => path !== index && path !== `docs/decisions/${name}`);
      return others.some((path) => {
        const text = textOf(path);
        return text.includes(`ADR-${name.slice(0, 4)}`) || text.includes(name);
      });
    };
    expect(names.filter((name) => !isCited(name))).toEqual([]);
  });
});
