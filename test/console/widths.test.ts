/**
 * What must not be overlooked or cut off, at the widths of a phone and of a laptop: a changed event, the
 * columns of an event's row, the edge of the page and of a wide table, the search.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { describeConsole } from '../support/console-world.ts';
import { shareOf, testOfLongRun } from '../support/long-run-share.ts';
import { APPROVED, idOf } from '../support/service-in-process.ts';
import { openRows } from '../support/tampering.ts';

const phone = { width: 390, height: 844 };
const laptop = { width: 1280, height: 800 };
const WIDTHS = shareOf([phone, laptop, { width: 320, height: 640 }], 1);

/** The texts that the row or the column of an event cuts off; the ends of the longest words and ids have a title or a page. */
const CUT = `(() => {
  const cut = [];
  const walker = document.createTreeWalker(document.querySelector('.windowed'), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    if (node.data.trim() === '') continue;
    const part = node.parentElement.closest('.event > *, .entry > *');
    const range = document.createRange();
    range.selectNodeContents(node);
    const [text, box, row] = [range, part, part.closest('.row')].map((one) => one.getBoundingClientRect());
    const isCut = text.right > box.right + 0.1 || text.bottom > row.bottom || text.top < row.top;
    if (isCut && !part.matches('.who, .entry .id')) cut.push(part.innerText);
  }
  return cut;
})()`;
const BEYOND_THE_PAGE = 'document.scrollingElement.scrollWidth - innerWidth';

describeConsole('the console at 1280, 390 and 320 px', (world) => {
  let refunded: string;
  let changed: string;

  beforeAll(async () => {
    const { service } = world;
    refunded = idOf(await service.create({ amount: 99_999_999 }));
    await service.change('capture', refunded, { captureAmount: 99_998_999 });
    await service.change('refund', refunded, { refundAmount: 500, reason: 'damaged' });
    changed = idOf(await service.create({ amount: 10_500 }));
    await service.change('capture', changed, { captureAmount: 9500 });
    await service.change('refund', changed, { refundAmount: 1000 });
    await service.change('refund', changed, { refundAmount: 500 });
    const log = openRows(join(service.dataDir, 'events.sqlite'));
    const stream = log.streams.find(({ name }) => name === `payment-${changed}`);
    const isChanged = (row: (typeof log.rows)[number]) =>
      row.stream_id === stream?.id && row.revision === 3;
    log.write(
      log.rows.map((row) =>
        isChanged(row) ? { ...row, text: row.text.replace('9500', '8500') } : row,
      ),
    );
    log.close();
  });
  afterAll(() => {
    expect(world.visits.flatMap(({ complaints }) => complaints)).toEqual([]);
  });

  const open = async (path: string, size: typeof phone): Promise<Page> => {
    const token = path.startsWith('/console/merchant')
      ? await world.tokenOf('shop', 'm_test', 'payments:read')
      : await world.tokenOf('ann');
    const { page } = await world.visit('/console', token);
    await page.setViewportSize(size);
    await world.visit(path, token);
    await page.waitForSelector('.waiting', { state: 'detached' });
    return page;
  };

  describe.each(WIDTHS)('$width px', (size) => {
    test('a changed event is in sight, with its type and amount, and nothing says that all is well', async () => {
      const page = await open(`/console/payments/${changed}`, size);
      const row = page.locator('.event.is-broken');
      await row.waitFor();
      expect(await row.count()).toBe(1);
      const text = await row.innerText();
      for (const part of [/r3/, /PaymentCaptured/, /85\.00 USD/, /its text does not have its hash/])
        expect(text).toMatch(part);
      expect(text).toMatch(/✕ changed/);
      const [box, list] = [await row.boundingBox(), await page.locator('.windowed').boundingBox()];
      expect(box?.y).toBeGreaterThanOrEqual(list?.y ?? 0);
      expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThanOrEqual(
        (list?.y ?? 0) + (list?.height ?? 0) + 1,
      );
      expect(await row.getAttribute('aria-current')).toBe('true');
      expect(await page.locator('h1').innerText()).toMatch(/✕ does not verify$/);
      expect(await page.locator('h1 .status:not(.failed)').count()).toBe(0);
      expect(await page.locator('.broken').count()).toBe(1);
      expect(await page.evaluate(CUT)).toEqual([]);
      expect(await page.evaluate(BEYOND_THE_PAGE)).toBe(0);
    });
  });

  test('a card number that is typed never leaves the browser, and one in the address is cut', async () => {
    const ann = await world.tokenOf('ann');
    const { page, requests } = await world.visit('/console/find', ann, {});
    await page.waitForSelector('tbody tr');
    requests.length = 0;
    for (const typed of [APPROVED, 'card 4242 4242-4242\u00a04242']) {
      await page.fill('[name=q]', typed);
      await page.keyboard.press('Enter');
      await page.waitForSelector(
        '[role=alert]:has-text("Only the last four digits are kept: search 4242.")',
      );
      expect(page.url()).toBe(`${world.url}/console/find`);
      expect(await page.inputValue('[name=q]')).toBe('4242');
    }
    expect(requests).toEqual([]);
    await page.keyboard.press('Enter');
    await page.waitForURL(/find\?q=4242$/);
    await page.waitForSelector('tbody tr');
    await page.goto(`${world.url}/console/find?q=${APPROVED}#token=${ann}`);
    await page.waitForURL(`${world.url}/console/find?q=4242`);
    await page.waitForSelector('tbody tr');
    expect(requests.filter((address) => address.startsWith('/audit'))).not.toContainEqual(
      expect.stringContaining(APPROVED),
    );
  });

  testOfLongRun(
    'the arrow keys go from the search into the list, through it and back, and Enter opens',
    async () => {
      const page = await open('/console/find', laptop);
      await page.keyboard.type('4242');
      await page.keyboard.press('Enter');
      await page.waitForURL(/q=4242/);
      await page.waitForSelector('tbody tr:nth-child(2)');
      const ids = await page.locator('tbody a.id').allInnerTexts();
      const focused = () => page.evaluate('document.activeElement.innerText');
      await page.keyboard.press('ArrowDown');
      expect(await focused()).toBe(ids[0]);
      await page.keyboard.press('ArrowUp');
      expect(await page.evaluate('document.activeElement.name')).toBe('q');
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('ArrowDown');
      expect(await focused()).toBe(ids[1]);
      await page.keyboard.press('/');
      expect(await page.evaluate('document.activeElement.name')).toBe('q');
      await page.keyboard.type('/');
      expect(await page.inputValue('[name=q]')).toBe('/');
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Enter');
      await page.waitForURL(new RegExp(`/console/payments/${ids[0]}`));
    },
  );
});
