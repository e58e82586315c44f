/** Serves the console's files as they are, without a token: the page sends the reader's own. */
import { createHash } from 'node:crypto';
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
  uplot: 'uplot/dist/uPlot.esm.js',
  'eventsource-parser/stream': 'eventsource-parser/dist/stream.js',
};

/** Files of the libraries that no module imports by name. */
const BESIDE: readonly string[] = [
  'eventsource-parser/dist/parse.js',
  'eventsource-parser/dist/errors.js',
  'uplot/dist/uPlot.min.css',
];

const addressOf = (file: string): string => `${CONSOLE_PATH}/lib/${file}`;

/** How the browser finds the libraries. The policy allows this one script by its hash. */
const IMPORT_MAP = JSON.stringify({
  imports: Object.fromEntries(
    Object.entries(LIBRARIES).map(([name, file]) => [name, addressOf(file)]),
  ),
});

const MAP_HASH = createHash('sha256').update(IMPORT_MAP).digest('base64');

const HEADERS = pageHeaders(`'sha256-${MAP_HASH}'`);

type Files = ReadonlyMap<string, string>;

/** Every address below the console that is a file. No part of a request becomes part of a path. */
const listFiles = async (): Promise<Files> => {
  const own = await readdir(APP, { recursive: true });
  const libraries = [...Object.values(LIBRARIES), ...BESIDE];
  return new Map([
    ...own
      .filter((name) => extname(name) in TYPES)
      .map((name): [string, string] => [`${CONSOLE_PATH}/app/${name}`, join(APP, name)]),
    ...libraries.map((file): [string, string] => [addressOf(file), join(PACKAGES, file)]),
  ]);
};

/** Every address below it that is no file gives the page, which shows what belongs there. */
export const registerConsole = (app: FastifyInstance, merchantClaims: readonly string[]): void => {
  const claims = merchantClaims.map(encodeURIComponent).join(',');
  const sendPage = async (reply: FastifyReply): Promise<FastifyReply> => {
    const html = await readFile(PAGE, 'utf8');
    return reply
      .type('text/html; charset=utf-8')
      .headers(HEADERS)
      .send(html.replace('{}', () => IMPORT_MAP).replace('content=""', `content="${claims}"`));
  };
  let files: Promise<Files> | undefined;
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
