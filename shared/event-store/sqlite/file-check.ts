/** Checks file and indexes in a process of its own: no signal ends SQLite's call, seconds long, in a thread. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { firstLineOf } from '../../runtime/error-text.ts';
import type { Logger } from '../../runtime/log.ts';
import { StoreUnavailable } from '../errors.ts';
import type { FileFault } from '../port.ts';

const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;

/** Throws StoreUnavailable where the check did not come to its end. */
export const checkFile = async (address: string, signal: AbortSignal): Promise<FileFault[]> => {
  const program = fileURLToPath(new URL('./integrity-check.ts', import.meta.url));
  const { NODE_COMPILE_CACHE } = process.env;
  const options = { signal, env: { NODE_COMPILE_CACHE }, maxBuffer: OUTPUT_BYTES_MAX };
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [program, address], options);
    return JSON.parse(stdout);
  } catch (error) {
    throw new StoreUnavailable(`${address}: its check did not end: ${firstLineOf(error)}`);
  }
};

const MET =
  'the file of the event log is damaged: it is checked now, see payments attention and docs/runbook.md, LOG_BROKEN';

export const watchDamage = (logger: Pick<Logger, 'error'> | undefined) => {
  let isMet = false;
  let listener = (): void => undefined;
  return {
    met: (reason: string): void => {
      if (isMet) return;
      isMet = true;
      logger?.error({ reason }, MET);
      listener();
    },
    onDamage: (next: () => void): void => {
      listener = next;
    },
  };
};
