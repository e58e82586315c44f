/**
 * The console where it is hard: a payment with a thousand events, many events a second, a service that
 * stops and comes back.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { launchBrowser, noBrowser, openPage, type Visit } from '../support/browser.ts';
import { describeUnless } from '../support/describe-driver.ts';
import { payment } from '../support/service-in-process.ts';
import { type Service, startService } from '../support/service-processes.ts';
import { until } from '../support/until.ts';

const missing = noBrowser();
const SCOPE = 'audit:read ops:admin payments:read payments:write';
/** One operation is two events, and the create of a sale three. */
const REFUNDS = 499;
const FRAMES_PER_SECOND_MIN = 50;

/** Frames a second while the list is scrolled from its top to its end, and the elements that it has. */
const SCROLL = `new Promise((resolve) => {
  const list = document.querySelector('.windowed');
  // The last event is chosen, and in sight.
  list.scrollTop = 0;
  const started = performance.now();
  let frames = 0;
  const step = () => {
    frames += 1;
    list.scrollTop += 120;
    const isEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 1;
    if (!isEnd && performance.now() - started < 30000) return requestAnimationFrame(step);
    const seconds = (performance.now() - started) / 1000;
    resolve({ perSecond: frames / seconds, frames, isEnd, rows: list.querySelectorAll('.row').length });
  };
  requestAnimationFrame(step);
})`;

/** Frames a second of a page that does nothing: what the machine has left for a browser. */
const STILL = `new Promise((resolve) => {
  const started = performance.now();
  let frames = 0;
  const step = () => {
    frames += 1;
    const seconds = (performance.now() - started) / 1000;
    if (seconds < 3) return requestAnimationFrame(step);
    resolve(frames / seconds);
  };
  requestAnimationFrame(step);
})`;

describeUnless(missing, 'the console, long', () => {
  let service: Service;
  let browser: Browser;
  let long: string;
  const opened: Visit[] = [];

  const visit = async (path: string, options = {}): Promise<Visit> => {
    const made = await openPage(browser, service.url, options);
    opened.push(made);
    await made.page.goto(`${service.url}${path}#token=${await service.token('*', SCOPE)}`);
    await made.page.waitForSelector('h1');
    return made;
  };
  const create = async (fields = {}): Promise<string> => {
    const { json } = await service.post('/api/v1/payments', payment(fields));
    return json.paymentId;
  };

  beforeAll(async () => {
    service = await startService({ env: { RATE_LIMIT_PER_SECOND: '0' } });
    browser = await launchBrowser();
    long = await create({ captureNow: true });
    for (let n = 0; n < REFUNDS; n += 1) {
      await service.post(`/api/v1/payments/${long}/refund`, { refundAmount: 1 });
    }
  });
  afterAll(async () => {
    expect(opened.flatMap(({ requests }) => requests.filter((a) => !a.startsWith('/')))).toEqual(
      [],
    );
    await browser?.close();
    await service?.[Symbol.asyncDispose]();
  });

  test('a payment with a thousand events scrolls as one with ten does', async () => {
    const { page, complaints } = await visit(`/console/payments/${long}`);
    await page.waitForSelector(`text=Verified: 1,001 events`);
    const scrolled = (await page.evaluate(SCROLL)) as {
      perSecond: number;
      frames: number;
      isEnd: boolean;
      rows: number;
    };
    const still = (await page.evaluate(STILL)) as number;
    process.stderr.write(
      `console: ${scrolled.perSecond.toFixed(0)} frames a second over 1,001 events, ${still.toFixed(0)} without scrolling\n`,
    );
    expect(scrolled).toMatchObject({ isEnd: true });
    expect(scrolled.frames).toBeGreaterThan(400);
    expect(scrolled.rows).toBeLessThan(50);
    expect(scrolled.perSecond).toBeGreaterThan(Math.min(FRAMES_PER_SECOND_MIN, 0.7 * still));
    expect(complaints).toEqual([]);
  });

  test('fifty events a second are shown, and the page stays quick to use', async () => {
    const { page, complaints } = await visit('/console/live');
    await page.waitForSelector('text=Connected.');
    const started = performance.now();
    let made = 0;
    while (performance.now() - started < 5_000) {
      await Promise.all(Array.from({ length: 5 }, () => create()));
      made += 10;
      await new Promise((resolve) =>
        setTimeout(resolve, Math.max(0, made * 20 - (performance.now() - started))),
      );
    }
    await until('all events are shown', async () => {
      const text = await page.locator('p[role=status]').first().innerText();
      return Number(/([\d,]+) events since/.exec(text)?.[1]?.replace(',', '')) >= made;
    });
    expect(await page.locator('.windowed .row').count()).toBeLessThan(60);
    expect(complaints).toEqual([]);
  });

  test('a service that stops is named, and the page goes on by itself when it is back', async () => {
    await using own = await startService();
    const made = await openPage(browser, own.url);
    await made.page.goto(`${own.url}/console/live#token=${await own.token('*', SCOPE)}`);
    await made.page.waitForSelector('text=Connected.');
    own.kill('SIGTERM');
    await own.exited;
    await made.page.waitForSelector('[role=alert]:has-text("The service does not respond.")');
    await using again = await startService({
      dataDir: own.dataDir,
      env: { PORT: String(own.port) },
    });
    await made.page.waitForSelector('text=Connected.');
    const { json } = await again.post('/api/v1/payments', payment());
    await made.page.waitForSelector(`.row a:has-text("${json.paymentId}")`);
  });
});
