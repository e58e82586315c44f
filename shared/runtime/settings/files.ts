/** Nothing throws. A problem lacks the name of its setting. */
import { isUtf8 } from 'node:buffer';
import { readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { orElse } from '../error-text.ts';
import { SECRET_SETTINGS } from './table.ts';

export type Report = (problem: string) => undefined;

const PROJECT_DIR = join(import.meta.dirname, '../../..');

export const settingsPath = (setting: string): string => resolve(PROJECT_DIR, setting);

const unreadable = (error: unknown): string => {
  const { code = 'unknown error' } = error as NodeJS.ErrnoException;
  return `names a file that cannot be read (${code})`;
};

export const readText = (file: string, report: Report): string | undefined => {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    return report(`${unreadable(error)}: ${file}`);
  }
};

/** Neither the content nor the parser's message, which may show a secret. */
export const readJson = (file: string, report: Report) => {
  const text = readText(file, report);
  if (text === undefined) return undefined;
  try {
    return { value: JSON.parse(text), text };
  } catch {
    return report('names a file that is not JSON');
  }
};

const SECRET_BYTES_MAX = 64 * 1024;
const OTHERS = 0o077;
const GROUP_READS = 0o040;

type Access = { mode: number; uid: number; gid: number };

/** Kubernetes mounts a secret this way for a process that is not root: without it no secret can be a file there. */
const isGivenByRoot = ({ mode, uid, gid }: Access): boolean =>
  (mode & OTHERS) === GROUP_READS && uid === 0 && process.getgroups?.().includes(gid) === true;

const readableProblem = (file: Access): string | undefined => {
  const { mode } = file;
  if ((mode & OTHERS) === 0 || isGivenByRoot(file)) return undefined;
  const octal = (mode & 0o777).toString(8).padStart(4, '0');
  return `names a file that others can read (mode ${octal}); it must be 0600`;
};

export const readableByOthers = (file: string): string | undefined =>
  orElse(undefined, () => readableProblem(statSync(file)));

/** Without one line break at its end. A problem has no path: the secret itself may have been set as one. */
export const readSecret = (file: string, report: Report): string | undefined => {
  try {
    const found = statSync(file);
    const problem = readableProblem(found);
    if (problem !== undefined) return report(problem);
    if (found.size > SECRET_BYTES_MAX)
      return report(`names a file of more than ${SECRET_BYTES_MAX} bytes`);
    const bytes = readFileSync(file);
    // Decoding would make different secrets equal.
    if (!isUtf8(bytes)) return report('names a file that is not UTF-8 text');
    const value = bytes.toString().replace(/\r?\n$/, '');
    return value.trim() === '' ? report('names an empty file') : value;
  } catch (error) {
    return report(unreadable(error));
  }
};

/** Puts the content of `X_FILE` in place of each secret `X`; `failed` have a problem. */
export const withSecretFiles = (env: NodeJS.ProcessEnv) => {
  const whole = { ...env };
  const problems: string[] = [];
  const failed = SECRET_SETTINGS.filter((name) => {
    const file = env[`${name}_FILE`];
    if (file === undefined) return false;
    const report: Report = (problem) => void problems.push(`${name}_FILE ${problem}`);
    const value =
      env[name] === undefined
        ? readSecret(settingsPath(file), report)
        : report(`must not be set together with ${name}`);
    whole[name] = value ?? env[name];
    return value === undefined;
  });
  return { env: whole, problems, failed };
};
