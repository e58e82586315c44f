/** Go, for the engines that are built once from a published module and kept in the user's cache. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { CACHE } from './engine.ts';

const BUILD_MS_MAX = 15 * 60_000;

/** Why an engine cannot be built here; undefined when it can. */
export const lackOfGo = (): string | undefined =>
  spawnSync('go', ['version'], { stdio: 'ignore' }).status === 0
    ? undefined
    : 'it is built by Go, and there is no `go` on the PATH (https://go.dev/dl)';

/**
 * Runs `go` with these arguments, with the cache there to build into. Only module downloads are
 * logged. Throws Error with the last line of a build that fails.
 */
export const runGo = async (
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv },
  log: (line: string) => void,
): Promise<void> => {
  mkdirSync(CACHE, { recursive: true, mode: 0o700 });
  const go = spawn('go', args, {
    ...options,
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: BUILD_MS_MAX,
  });
  let last = '';
  go.stderr.setEncoding('utf8').on('data', (text: string) => {
    for (const line of text.split('\n').filter(Boolean)) {
      last = line;
      if (line.startsWith('go: downloading')) log(line);
    }
  });
  const code = await new Promise((resolve) => go.on('close', resolve).on('error', resolve));
  if (code !== 0) throw new Error(`the build failed: ${last}`);
};
