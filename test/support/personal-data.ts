/** Keys of personal data in memory, and openers for tests that have none. */
import type { KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { newKeyBytes, personalKeyOf } from '../../personal-data/box.ts';
import { openKeyStore } from '../../personal-data/open.ts';
import { createOpener } from '../../personal-data/opener.ts';
import { type KeyStore, KeysUnavailable } from '../../personal-data/port.ts';
import { bodyOf } from '../../shared/payment/response.ts';
import { type OpenText, openPersonal, type PaymentReadModel } from '../../shared/payment/state.ts';
import { silentLog } from './silent-log.ts';

export const newPersonalKey = () => personalKeyOf(newKeyBytes());

/** `away` makes each call fail, as a server that is out of reach. */
export const memoryKeys = () => {
  const keys = new Map<string, KeyObject | 'erased'>();
  const faults = { away: false };
  const reach = (): void => {
    if (faults.away) throw new KeysUnavailable('the store of keys is away');
  };
  let checkpoint: string | undefined;
  const store: KeyStore = {
    take: async () => {
      reach();
      const made = newPersonalKey();
      keys.set(made.id, made.key);
      return made;
    },
    read: async (ids) => {
      reach();
      return new Map(ids.map((id) => [id, keys.get(id) ?? 'missing']));
    },
    erase: async (ids) => {
      reach();
      for (const id of ids) keys.set(id, 'erased');
    },
    rewrap: async () => ({ rewrapped: 0, unreadable: 0 }),
    checkpoint: async () => checkpoint,
    saveCheckpoint: async (text) => {
      checkpoint = text;
    },
    close: async () => undefined,
  };
  return { ...store, keys, faults };
};

/** Without a key: a box stays sealed. */
export const openNothing: OpenText = async ({ clear, erasedAt }) => {
  if (clear !== undefined) return { text: clear };
  return erasedAt === undefined ? { sealed: true } : { erased: true, erasedAt };
};

/** The body with its box unopened, or with the group that stands there in the clear. */
export const bodyUnopened = (payment: PaymentReadModel): string => {
  const { clear } = payment.personal;
  return bodyOf(payment, clear === undefined ? { sealed: true } : { text: clear });
};

/** Opens what is sealed in a folder of a service that has ended. */
export const openerIn = async (dataDir: string) => {
  const fileOf = (name: string): string => join(dataDir, name);
  const ownKek = readFileSync(fileOf('personal.kek'), 'utf8').trim();
  const config = { mongoUrl: undefined, personalData: { kek: undefined, previousKek: undefined } };
  const keys = await openKeyStore({ config, fileOf, ownKek, takes: false });
  const store = { readStream: async () => [] };
  const { openText } = createOpener({ keys, store, logger: silentLog });
  return {
    bodyOf: async (payment: PaymentReadModel): Promise<string> =>
      bodyOf(payment, await openPersonal(openText, payment)),
    [Symbol.asyncDispose]: keys.close,
  };
};
