/**
 * Deliberate bugs, one at a time: each is put into a copy of the project, the test file named with
 * it is run there, and has to fail. test/support/seeded-bug-list.ts lists them.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NODE, ROOT } from './service.ts';

/**
 * What a bug does to the text at its place: leave it out, put another text where the pattern first
 * matches (`$1` and `$&` as in String.replace), or add a line before or after it.
 */
export type Change =
  | 'delete'
  | { readonly replace: RegExp; readonly by: string }
  | { readonly before: string }
  | { readonly after: string };

type Placed = {
  /** What somebody did wrong. */
  readonly name: string;
  /** The id of the comment above the place. */
  readonly at: string;
  readonly change: Change;
};

export type SeededBug = Placed & {
  /** The test file that has to notice it. */
  readonly test: string;
  /** The variable that names the engine without which that file has no test to run. */
  readonly needs?: string;
};

export type UnnoticedBug = Placed & { readonly reason: string };

/** A place in the sources: the text of the file up to it, at it and after it. */
export type Place = {
  readonly file: string;
  readonly before: string;
  readonly text: string;
  readonly after: string;
};

const MARKER = /^ *\/\/ seeded bug: (\S+)$/;
/** The compiler's errors on a name or a property that does not exist, unless the type is empty. */
const MISSING_NAME = /error TS(2304|2339|2551|2552|18004): (?!.*'never')/;
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');
const NOT_COPIED = new Set(['node_modules', '.git', '.types', '.stryker-tmp', 'reports', 'data']);
const NOT_SEARCHED = new Set([...NOT_COPIED, 'test', 'docs']);
/** Of one test file, on a busy machine. */
const RUN_MS_MAX = 400_000;

const sourcesIn = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter(({ name }) => !NOT_SEARCHED.has(name))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return sourcesIn(path);
      return entry.name.endsWith('.ts') ? [path] : [];
    });

const indentOf = (line: string): number => line.search(/\S|$/);

/** How many lines belong to the first: what is indented under it, and the bracket that closes it. */
const lengthOf = (lines: readonly string[]): number => {
  const indent = indentOf(lines[0] ?? '');
  const isPart = (line: string): boolean =>
    indentOf(line) > indent || (indentOf(line) === indent && /^\s*[)}\]`]/.test(line));
  const end = lines.findIndex((line, index) => index > 0 && !isPart(line));
  return end === -1 ? lines.length : end;
};

const placesIn = (root: string, file: string): [string, Place][] => {
  const lines = readFileSync(join(root, file), 'utf8').split('\n');
  return lines.flatMap((line, index): [string, Place][] => {
    const id = MARKER.exec(line)?.[1];
    if (id === undefined) return [];
    const start = index + 1;
    const end = start + lengthOf(lines.slice(start));
    const textOf = (part: string[]): string => part.map((one) => `${one}\n`).join('');
    const place = {
      file,
      before: textOf(lines.slice(0, start)),
      text: textOf(lines.slice(start, end)),
      after: lines.slice(end).join('\n'),
    };
    return [[id, place]];
  });
};

/** Every place that a comment marks, with the id there; an id that stands twice is there twice. */
export const markedPlaces = (): [string, Place][] =>
  sourcesIn('.').flatMap((file) => placesIn(ROOT, file));

const changed = (text: string, change: Change): string => {
  if (change === 'delete') return '';
  if ('replace' in change) return text.replace(change.replace, change.by);
  return 'before' in change ? `${change.before}\n${text}` : `${text}${change.after}\n`;
};

/** The whole file with the bug in it. */
export const withBug = ({ before, text, after }: Place, { change }: Placed): string =>
  `${before}${changed(text, change)}${after}`;

/** A copy of the project that shares its packages; removed by the caller. */
export const copyOfProject = (): string => {
  const copy = mkdtempSync(join(tmpdir(), 'payments-bugs-'));
  cpSync(ROOT, copy, {
    recursive: true,
    filter: (path) => !NOT_COPIED.has(path.slice(ROOT.length + 1)),
  });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  return copy;
};

/** The bugs in as few groups as hold no place twice. */
const groupsOf = (bugs: readonly SeededBug[]): SeededBug[][] => {
  const groups: SeededBug[][] = [];
  for (const bug of bugs) {
    const free = groups.find((group) => group.every(({ at }) => at !== bug.at));
    if (free === undefined) groups.push([bug]);
    else free.push(bug);
  }
  return groups;
};

const putAll = (copy: string, bugs: readonly SeededBug[], places: Map<string, Place>): void => {
  for (const bug of bugs) {
    const file = places.get(bug.at)?.file ?? '';
    const place = new Map(placesIn(copy, file)).get(bug.at);
    if (place !== undefined) writeFileSync(join(copy, file), withBug(place, bug));
  }
};

/**
 * What the compiler misses when the bugs are in: a test would fail at a name that is not there,
 * and would seem to have noticed the bug. The copy is as before afterwards.
 */
export const missingNames = (copy: string, bugs: readonly SeededBug[]): string[] => {
  const places = new Map(markedPlaces());
  return groupsOf(bugs).flatMap((group) => {
    putAll(copy, group, places);
    const { stdout } = spawnSync(NODE, [TSC, '-b'], { cwd: copy, encoding: 'utf8' });
    for (const { file } of places.values()) cpSync(join(ROOT, file), join(copy, file));
    return stdout.split('\n').filter((line) => MISSING_NAME.test(line));
  });
};

/** Ends what a run started and left behind. */
const endGroup = (leader: number): void => {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch {
    // All of it has ended by itself.
  }
};

/** The exit code of a test file in the copy, which ends at its first failure; null if it hangs. */
const run = async (copy: string, test: string): Promise<number | null> => {
  const child = spawn(NODE, ['scripts/test.ts', test, '--forceExit'], {
    cwd: copy,
    stdio: 'ignore',
    // A group of its own.
    detached: true,
    env: { ...process.env, TEST_END_AT_FAILURE: '1' },
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${NODE} could not be started`);
  const timer = setTimeout(() => endGroup(pid), RUN_MS_MAX);
  const [code] = await once(child, 'exit');
  clearTimeout(timer);
  endGroup(pid);
  return code;
};

/** Whether the bug's test file ends and fails in the copy, which is as before afterwards. */
export const isNoticed = async (copy: string, bug: SeededBug, place: Place): Promise<boolean> => {
  const path = join(copy, place.file);
  writeFileSync(path, withBug(place, bug));
  const code = await run(copy, bug.test);
  writeFileSync(path, `${place.before}${place.text}${place.after}`);
  return code !== 0 && code !== null;
};

/** The items for which `isFound` is false, one after the other in each copy; progress on stderr. */
export const missedIn = async <T>(
  copies: readonly string[],
  items: readonly T[],
  nameOf: (item: T) => string,
  isFound: (copy: string, item: T) => Promise<boolean>,
): Promise<T[]> => {
  const missed: T[] = [];
  const waiting = items.entries();
  const work = async (copy: string): Promise<void> => {
    for (const [index, item] of waiting) {
      const line = `seeded bugs: ${index + 1} of ${items.length}: ${nameOf(item)}`;
      const isMissed = !(await isFound(copy, item));
      if (isMissed) missed.push(item);
      process.stderr.write(`${line}${isMissed ? ': NO' : ''}\n`);
    }
  };
  await Promise.all(copies.map(work));
  return missed;
};

/**
 * The test files that fail in the untouched copies, where noticing a bug would say nothing: first as
 * the bugs are driven, then, as a busy machine is no failure, once more with nothing beside them.
 */
export const failingUntouched = async (
  copies: readonly string[],
  tests: readonly string[],
): Promise<string[]> => {
  const isPassing = async (copy: string, test: string) => (await run(copy, test)) === 0;
  const failed = await missedIn(copies, tests, (test) => `untouched, ${test}`, isPassing);
  return missedIn(copies.slice(0, 1), failed, (test) => `untouched, alone, ${test}`, isPassing);
};

export const removeCopy = (copy: string): void => rmSync(copy, { recursive: true, force: true });
