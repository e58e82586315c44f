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

/** What a bench found: markdown for the page, and pictures by their file names. */
export type Findings = { name: string; text: string; pictures: Readonly<Record<string, string>> };

/** Writes the findings into docs/. */
export const writeFindings = ({ name, text, pictures }: Findings): void => {
  const page = join(ROOT, PAGE);
  writeFileSync(page, between(readFileSync(page, 'utf8'), name, text));
  mkdirSync(join(ROOT, PICTURES), { recursive: true });
  for (const [file, svg] of Object.entries(pictures))
    writeFileSync(join(ROOT, PICTURES, file), svg);
};
