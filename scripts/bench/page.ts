/** Puts what a bench found between its marks on a page, and pictures beside it. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './server.ts';

const PAGE = 'docs/performance.md';
const PICTURES = 'docs/pictures';

/** The page with `text` in place of what stood between the marks of `name`. Throws without marks. */
export const between = (page: string, name: string, text: string): string => {
  const begin = `<!-- bench ${name} -->`;
  const end = `<!-- end of bench ${name} -->`;
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from === -1 || to < from) throw new Error(`${PAGE} has no "${begin}" and "${end}"`);
  return `${page.slice(0, from + begin.length)}\n\n${text.trim()}\n\n${page.slice(to)}`;
};

const GOALS = 'goals';
const GOALS_HEADER = '| goal | aim | before | now |';

/** The rows of each table of goals below a heading, with a link to it. */
const goalRows = (page: string): string[] => {
  const lines = page.split('\n');
  const isRow = (line: string | undefined): line is string => line?.startsWith('|') === true;
  let heading = '';
  return lines.flatMap((line, at) => {
    if (line.startsWith('## ')) heading = line.slice('## '.length);
    if (line !== GOALS_HEADER) return [];
    const link = `[${heading}](#${heading
      .toLowerCase()
      .replaceAll(/[^a-z0-9 ]/g, '')
      .replaceAll(' ', '-')})`;
    const end = lines.findIndex((other, below) => below > at && !isRow(other));
    return lines.slice(at + 2, end).map((row) => `${row} ${link} |`);
  });
};

/** The page with the goals of all benches in the one table at its top. Throws without its marks. */
export const withAllGoals = (page: string): string => {
  const below = page.slice(page.indexOf(`<!-- end of bench ${GOALS} -->`));
  const head = [`${GOALS_HEADER} where |`, '| --- | --- | --- | --- | --- |'];
  return between(page, GOALS, [...head, ...goalRows(below)].join('\n'));
};

/** What a bench found: markdown for the page, and pictures by their file names. */
export type Findings = { name: string; text: string; pictures: Readonly<Record<string, string>> };

/** Writes the findings into docs/. */
export const writeFindings = ({ name, text, pictures }: Findings): void => {
  const page = join(ROOT, PAGE);
  writeFileSync(page, withAllGoals(between(readFileSync(page, 'utf8'), name, text)));
  mkdirSync(join(ROOT, PICTURES), { recursive: true });
  for (const [file, svg] of Object.entries(pictures))
    writeFileSync(join(ROOT, PICTURES, file), svg);
};
