/**
 * A real browser on the service's pages. CHROMIUM_PATH names another one than Debian's; where there is
 * none, what needs one is skipped. Each page notes what it fetched and what its console complained of.
 */
import { existsSync } from 'node:fs';
import { type Browser, chromium, type Page } from 'playwright-core';
import { HANGS_MS } from './time-bounds.ts';

const EXECUTABLE = process.env.CHROMIUM_PATH ?? '/usr/bin/chromium';

/** Why no browser can be started here; undefined where one can. */
export const noBrowser = (): string | undefined =>
  existsSync(EXECUTABLE) ? undefined : `no Chromium at CHROMIUM_PATH, ${EXECUTABLE}`;

export const launchBrowser = (): Promise<Browser> =>
  chromium.launch({
    executablePath: EXECUTABLE,
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
    timeout: HANGS_MS,
  });

export type Visit = {
  page: Page;
  /** The addresses that the page fetched; those of the service without its origin. */
  requests: string[];
  /** What the console complained of, a broken policy included. */
  complaints: string[];
};

/** A page that notes what it does; its own context, so nothing is shared with another one. */
export const openPage = async (
  browser: Browser,
  origin: string,
  options: Parameters<Browser['newContext']>[0] = {},
): Promise<Visit> => {
  const context = await browser.newContext({ acceptDownloads: true, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(HANGS_MS);
  const requests: string[] = [];
  const complaints: string[] = [];
  page.on('request', (request) => {
    const address = request.url();
    if (!/^(data|blob):/.test(address)) requests.push(address.replace(origin, ''));
  });
  page.on('console', (message) => {
    if (message.type() !== 'log') complaints.push(`${message.type()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  return { page, requests, complaints };
};
