/** `npx payments` for a shell, without a process for each: this process runs the command. */
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { runCli } from './cli.ts';
import { temporaryFolder } from './temporary-folder.ts';

export type CliForShells = {
  /** Defines `npx` in a bash that has curl; a command that fails prints its errors to stdout. */
  definition: string;
  [Symbol.asyncDispose](): Promise<void>;
};

/** Listens until it is disposed of; every command gets the settings of `env`. */
export const openCliForShells = async (env: NodeJS.ProcessEnv): Promise<CliForShells> => {
  const folder = temporaryFolder();
  const socket = join(folder.path, 'cli');
  const server = createServer(async (request, response) => {
    const [, ...args] = (await text(request)).split('\0').slice(0, -1);
    const { code, stdout, stderr } = await runCli(args, env);
    response.writeHead(code === 0 ? 200 : 500).end(code === 0 ? stdout : stdout + stderr);
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  const curl = `curl -sS --fail-with-body --unix-socket '${socket}' --data-binary @- http://cli/`;
  return {
    definition: `npx() { printf '%s\\0' "$@" | ${curl}; }`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      folder.remove();
    },
  };
};
