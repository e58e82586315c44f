/** What axe finds on a page that is open in a browser. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import type { Page } from 'playwright-core';
import { ROOT } from './service-processes.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

type Violation = { id: string; impact: string; nodes: { html: string }[] };

/** The serious and critical violations, each with the first place that has it. */
export const seriousViolations = async (page: Page): Promise<string[]> => {
  const found = (await page.evaluate(
    `${AXE}; axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations)`,
  )) as Violation[];
  return found
    .filter(({ impact }) => ['serious', 'critical'].includes(impact))
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
};

/** The page has no serious violation. With TEST_PICTURES it is the picture of that name in docs/console.md. */
export const look = async (page: Page, picture: string): Promise<void> => {
  expect(await seriousViolations(page)).toEqual([]);
  if (process.env.TEST_PICTURES === undefined) return;
  await page.screenshot({ path: join(ROOT, `docs/pictures/console-${picture}.png`) });
};
