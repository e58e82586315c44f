/**
 * `/docs` in a real browser with the headers of production: nothing is fetched from elsewhere,
 * nothing breaks its policy, and an operation can be tried out with the token of the address.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { seriousViolations } from '../support/accessibility.ts';
import { launchBrowser, noBrowser, openPage, type Visit } from '../support/browser.ts';
import { describeUnless } from '../support/describe-driver.ts';
import { type Service, startService } from '../support/service-processes.ts';

const missing = noBrowser();
describeUnless(missing, 'the API page', () => {
  let service: Service;
  let browser: Browser;
  let visit: Visit;
  beforeAll(async () => {
    service = await startService();
    browser = await launchBrowser();
    visit = await open();
  });
  afterAll(async () => {
    await browser?.close();
    await service?.[Symbol.asyncDispose]();
  });

  const open = async (): Promise<Visit> => {
    const visit = await openPage(browser, service.url);
    const { page } = visit;
    const token = await service.token('m_demo', 'payments:read payments:write audit:read');
    await page.goto(`${service.url}/docs#token=${token}`);
    await page.waitForSelector('.opblock');
    return visit;
  };

  const operation = (id: string): string => `[id$="-${id}"]`;

  /** Opens an operation, sends it as it stands and gives the status and body of the answer. */
  const tryOut = async ({ page }: Visit, id: string): Promise<[status: string, body: string]> => {
    await page.click(`${operation(id)} .opblock-summary-control`);
    await page.click(`${operation(id)} .execute`);
    const response = page.locator(`${operation(id)} .live-responses-table tbody`);
    await response.waitFor();
    const status = await response.locator('.response-col_status').innerText();
    return [
      status.trim(),
      await response.locator('.highlight-code .microlight').first().innerText(),
    ];
  };

  test('the token moves from the address bar to the bearer box, and is stored nowhere', async () => {
    expect(visit.page.url()).toBe(`${service.url}/docs`);
    expect(await visit.page.locator('.authorize.locked').count()).toBe(1);
    expect(await visit.page.evaluate('JSON.stringify([{...localStorage}, document.cookie])')).toBe(
      '[{},""]',
    );
  });

  test('a payment can be made from the page', async () => {
    const [status, body] = await tryOut(visit, 'createPayment');
    expect(status).toMatch(/^200/);
    expect(JSON.parse(body)).toMatchObject({ status: 'AUTHORIZED', amount: 2500 });
  });

  test('the token stays when the other API document is chosen', async () => {
    await visit.page.selectOption('#document', '/openapi-audit.json');
    await visit.page.waitForSelector(operation('searchPayments'));
    const [status] = await tryOut(visit, 'searchPayments');
    expect(status).toMatch(/^200/);
  });

  test('the page fetches nothing from elsewhere and breaks no policy', () => {
    expect(visit.requests.filter((address) => !address.startsWith('/'))).toEqual([]);
    expect(visit.requests).toContain('/api/v1/payments');
    expect(visit.complaints).toEqual([]);
  });

  test.each([
    ['/docs', '.opblock'],
    ['/docs/errors', 'h2'],
  ])(
    '%s is laid out at 320 px: nothing runs out of it, and no line has one letter',
    async (path, part) => {
      const { page } = await openPage(browser, service.url, {
        viewport: { width: 320, height: 700 },
      });
      await page.goto(`${service.url}${path}`);
      await page.waitForSelector(part);
      expect(await page.evaluate('document.scrollingElement.scrollWidth')).toBe(320);
      for (const words of await page.locator('.opblock-tag small').all()) {
        expect((await words.boundingBox())?.width).toBeGreaterThan(200);
      }
    },
  );

  test.each(['/openapi.json', '/openapi-audit.json'])(
    '%s has no serious violation of accessibility, closed and open',
    async (document) => {
      const { page } = await openPage(browser, service.url, { bypassCSP: true });
      await page.goto(`${service.url}/docs`);
      await page.selectOption('#document', document);
      const own = operation(document === '/openapi.json' ? 'createPayment' : 'paymentEvents');
      await page.waitForSelector(own);
      expect(await seriousViolations(page)).toEqual([]);
      expect(await page.locator('main').count()).toBe(1);
      await page.click(`${own} .opblock-summary-control`);
      await page.waitForSelector(`${own} .responses-table .microlight`);
      expect(await seriousViolations(page)).toEqual([]);
      // Each level begins below the one before: the title, what belongs together, one part of it.
      expect(await page.locator('.opblock-tag:not([aria-level="2"])').count()).toBe(0);
    },
  );
});
