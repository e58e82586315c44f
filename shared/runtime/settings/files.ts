/**
 * Secrets that are given as files: `X_FILE` names a file that holds the value of the setting `X`
 * (docs/settings.md), so that a secret stands in no environment and no process list.
 */
import { isUtf8 } from 'node:buffer';
import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';

const BYTES_MAX = 64 * 1024;
const OTHERS = 0o077;

/**
 * A line without the setting's name where others than its owner can read a file, by its mode; undefined
 * where they cannot.
 */
const readableProblem = (mode: number): string | undefined => {
  if ((mode & OTHERS) === 0) return undefined;
  const octal = (mode & 0o777).toString(8).padStart(4, '0');
  return `names a file that others can read (mode ${octal}); it must be 0600`;
};

/** The same of a file that may still be made. Never throws. */
export const readableByOthers = (file: string): string | undefined => {
  try {
    return readableProblem(statSync(file).mode);
  } catch {
    return undefined;
  }
};

/** The content of a secret's file. Never throws; `problem` is a line without the setting's name. */
export const contentOf = (file: string): { value: string } | { problem: string } => {
  try {
    const { mode, size } = statSync(file);
    const problem = readableProblem(mode);
    if (problem !== undefined) return { problem };
    if (size > BYTES_MAX) return { problem: `names a file of more than ${BYTES_MAX} bytes` };
    const bytes = readFileSync(file);
    // What is no text would be read as one sign for each wrong byte: different secrets become one.
    if (!isUtf8(bytes)) return { problem: 'names a file that is not UTF-8 text' };
    const value = bytes.toString().replace(/\r?\n$/, '');
    return value.trim() === '' ? { problem: 'names an empty file' } : { value };
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    return { problem: `names a file that cannot be read (${code})` };
  }
};

/**
 * The environment with the content of each secret's file in the place of `X`; `names` are the
 * settings that are secrets. A relative path counts from `folder`, one line break at the end does not
 * count. Never throws: each problem is a line that names the setting, and `failed` holds the secrets
 * that have one.
 */
export const withSecretFiles = (
  env: NodeJS.ProcessEnv,
  names: readonly string[],
  folder: string,
): { env: NodeJS.ProcessEnv; problems: string[]; failed: string[] } => {
  const whole = { ...env };
  const problems: string[] = [];
  const failed: string[] = [];
  for (const name of names) {
    const file = env[`${name}_FILE`];
    if (file === undefined) continue;
    const read =
      env[name] === undefined
        ? contentOf(resolve(folder, file))
        : { problem: `must not be set together with ${name}` };
    if ('value' in read) whole[name] = read.value;
    else {
      problems.push(`${name}_FILE ${read.problem}`);
      failed.push(name);
    }
  }
  return { env: whole, problems, failed };
};
