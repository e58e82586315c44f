/** Serves the console's files as they are, without a token: the page sends the reader's own. */
import { hash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { reject } from '../shared/http/errors.ts';
import { CONSOLE_PATH, pageHeaders } from '../shared/http/pages.ts';
import { WITH_HEAD } from '../shared/http/server/health.ts';

const APP = join(import.meta.dirname, 'app');
const PAGE = join(import.meta.dirname, 'index.html');
const PACKAGES = join(import.meta.dirname, '../node_modules');

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
};

/** The libraries by the names that the modules import them by. */
const LIBRARIES: Readonly<Record<string, string>> = {
  preact: 'preact/dist/preact.mjs',
  'preact/hooks': 'preact/hooks/dist/hooks.mjs',
  htm: 'htm/dist/htm.module.js',
  'eventsource-parser/stream': 'eventsource-parser/dist/stream.js',
};

/** Files of the libraries that no module imports by name. */
const BESIDE: readonly string[] = [
  'eventsource-parser/dist/parse.js',
  'eventsource-parser/dist/errors.js',
];

const addressOf = (file: string): string => `${CONSOLE_PATH}/lib/${file}`;

/** How the browser finds the libraries. The policy allows this one script by its hash. */
const IMPORTS = Object.entries(LIBRARIES).map(([name, file]) => [name, addressOf(file)]);
const IMPORT_MAP = JSON.stringify({ imports: Object.fromEntries(IMPORTS) });

const HEADERS = pageHeaders(`'sha256-${hash('sha256', IMPORT_MAP, 'base64')}'`);

/** Every address below the console that is a file. No part of a request becomes part of a path. */
const listFiles = async (): Promise<ReadonlyMap<string, string>> => {
  const files = new Map<string, string>();
  for (const name of await readdir(APP, { recursive: true }))
    if (extname(name) in TYPES) files.set(`${CONSOLE_PATH}/app/${name}`, join(APP, name));
  for (const file of [...Object.values(LIBRARIES), ...BESIDE])
    files.set(addressOf(file), join(PACKAGES, file));
  return files;
};

/** Every address below it that is no file gives the page, which shows what belongs there. */
export const registerConsole = (app: FastifyInstance, merchantClaims: readonly string[]): void => {
  const claims = merchantClaims.map(encodeURIComponent).join(',');
  const sendPage = async (reply: FastifyReply): Promise<FastifyReply> => {
    const template = await readFile(PAGE, 'utf8');
    const html = template.replace('{}', () => IMPORT_MAP);
    reply.type('text/html; charset=utf-8').headers(HEADERS);
    return reply.send(html.replace('content=""', `content="${claims}"`));
  };
  let files: ReturnType<typeof listFiles> | undefined;
  const send = async (path: string, reply: FastifyReply): Promise<FastifyReply> => {
    files ??= listFiles();
    const file = (await files).get(path);
    if (file !== undefined)
      return reply.type(TYPES[extname(file)] ?? '').send(await readFile(file));
    const isFile = path.startsWith(`${CONSOLE_PATH}/app/`) || path.startsWith(addressOf(''));
    return isFile ? reject(reply, 'NOT_FOUND') : sendPage(reply);
  };
  app.get(CONSOLE_PATH, WITH_HEAD, (_request, reply) => sendPage(reply));
  app.get<{ Params: { '*': string } }>(`${CONSOLE_PATH}/*`, WITH_HEAD, ({ params }, reply) =>
    send(`${CONSOLE_PATH}/${params['*']}`, reply),
  );
};
