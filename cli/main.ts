/** The command line `payments`. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 did not verify, or needs a person. */
import { runCommandLine } from './run.ts';

// A reader that ends early (`| head`) is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

process.exitCode = await runCommandLine(process.argv.slice(2));
