/**
 * A reader who has a keyboard alone. Each key is followed by a look at where the focus is: it is to be
 * seen, in sight, and Tab never leads back up the page.
 */
import { expect } from '@jest/globals';
import type { Page } from 'playwright-core';

export type Focused = {
  /** What a screen reader would call it: its label, else its text. */
  name: string;
  tag: string;
  /** The text of the row or card that it is in. */
  around: string;
};

const STOPS_MAX = 120;

const FOCUSED = `(() => {
  const focused = document.activeElement;
  const before = window.focusedBefore;
  window.focusedBefore = focused;
  const text = (element) => (element?.innerText ?? '').replace(/\\s+/g, ' ').trim();
  const { outlineStyle, outlineWidth } = getComputedStyle(focused);
  const box = focused.getBoundingClientRect();
  const isOnward = before?.isConnected !== true || [before, document.body].includes(focused) ||
    (before.compareDocumentPosition(focused) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
  return {
    name: focused === document.body ? '' :
      focused.getAttribute('aria-label') ?? (text(focused.labels?.[0]) || text(focused)),
    tag: focused.tagName.toLowerCase(),
    around: text(focused.closest('tr, .card, .row')),
    isSeen: outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 2,
    isInSight: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
    isOnward,
  };
})()`;

type Look = Focused & { isSeen: boolean; isInSight: boolean; isOnward: boolean };

export type Keyboard = ReturnType<typeof keyboardOf>;

export const keyboardOf = (page: Page) => {
  const look = async (): Promise<Look> => (await page.evaluate(FOCUSED)) as Look;
  const expectSeen = (looked: Look, key: string): void => {
    const { name, tag, isSeen, isInSight } = looked;
    if (tag === 'body') return;
    expect({ key, tag, name, isSeen, isInSight }).toMatchObject({ isSeen: true, isInSight: true });
  };
  const press = async (key: string): Promise<Look> => {
    await page.keyboard.press(key);
    const looked = await look();
    expectSeen(looked, key);
    return looked;
  };
  return {
    focused: look,
    /** Presses a key, and expects the focus to be seen where it then is. */
    press,
    type: async (text: string) => page.keyboard.insertText(text),
    /** Tab, or with `isBack` Shift+Tab, until what has the focus is called so, in a row or card with `around`. */
    tabTo: async (name: RegExp, { around = '', isBack = false } = {}) => {
      const passed: string[] = [];
      for (let stop = 0; stop < STOPS_MAX; stop += 1) {
        const looked = await press(isBack ? 'Shift+Tab' : 'Tab');
        if (name.test(looked.name) && looked.around.includes(around)) return looked;
        passed.push(`${looked.tag} ${looked.name.slice(0, 40)}`);
        // The browser's own surroundings lie between the end of a page and its start.
        const isOut = looked.tag === 'body' || passed.length === 1 || isBack;
        if (!isOut) expect([passed.slice(-2), looked.isOnward]).toEqual([passed.slice(-2), true]);
        if (looked.tag === 'body' && stop > 0) break;
      }
      throw new Error(`Tab never came to ${name}; it passed ${passed.join(', ')}`);
    },
    /** Waits until the title of a page, or of a part of it, has the focus. */
    arriveAt: async (title: RegExp) => {
      const isThere = `${title}.test(document.activeElement.innerText) && /^H[12]$/.test(document.activeElement.tagName)`;
      const end = Date.now() + 10_000;
      while (!(await page.evaluate(isThere))) {
        if (Date.now() > end)
          throw new Error(`${title} has no focus: ${JSON.stringify(await look())}`);
        await page.waitForTimeout(20);
      }
      expectSeen(await look(), 'arrival');
    },
  };
};
