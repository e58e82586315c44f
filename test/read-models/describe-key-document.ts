/** The promises of shared/read-models/key-document.ts, asked of one driver. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { KeyDocument } from '../../shared/read-models/key-document.ts';
import { type Driver, describeDriver } from '../support/describe-driver.ts';

/** `open` opens the document of a name, as the next start of the service would. */
type KeyDocumentDriver = Driver & { open(name: string): KeyDocument };

export const describeKeyDocument = (driver: KeyDocumentDriver): void =>
  describeDriver('key document', driver, () => {
    let name: string;
    let document: KeyDocument;
    beforeEach(() => {
      name = crypto.randomUUID();
      document = driver.open(name);
    });
    afterEach(() => document.close());

    test('is not there at first, and is then what was saved last', async () => {
      expect(await document.load()).toBeUndefined();
      expect(await document.save('é "1"', 0)).toBe(true);
      expect(await document.save('2', 1)).toBe(true);
      expect(await document.load()).toEqual({ version: 2, text: '2' });
      const other = driver.open(name);
      expect(await other.load()).toEqual({ version: 2, text: '2' });
      await other.close();
    });

    test('a writer that did not see the last change changes nothing', async () => {
      expect(await document.save('early', 1)).toBe(false);
      expect(await document.load()).toBeUndefined();
      await document.save('1', 0);
      await document.save('2', 1);
      for (const version of [0, 1, 3]) expect(await document.save('x', version)).toBe(false);
      expect(await document.load()).toEqual({ version: 2, text: '2' });
    });
  });
