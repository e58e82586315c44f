/** How a message is signed, and with which keys. */
import { describe, expect, test } from '@jest/globals';
import {
  endpointKey,
  listenKey,
  openWebhookSecret,
  secretTextOf,
  signedHeaders,
} from '../../webhooks/signer.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';

const INSTALLATION = 'a secret of the installation, 32 bytes long at least';
const endpointId = 'we_01K2XW6G9QZJ8M4T3B5N7R0AYC';

describe('the signature (Standard Webhooks 1.0)', () => {
  test("is the one of the specification's own example", () => {
    const key = Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64');
    const id = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
    expect(signedHeaders([key], id, 1_614_265_330_999, '{"test": 2432232314}')).toEqual({
      'webhook-id': id,
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    });
  });

  test('each endpoint, each number, each merchant and listening have keys of their own', () => {
    const keys = [
      endpointKey(INSTALLATION, endpointId, 1),
      endpointKey(INSTALLATION, endpointId, 2),
      endpointKey(INSTALLATION, 'we_01K2XW6G9QZJ8M4T3B5N7R0AYD', 1),
      endpointKey(`${INSTALLATION}.`, endpointId, 1),
      listenKey(INSTALLATION, 'm_1'),
      listenKey(INSTALLATION, 'm_2'),
    ].map(secretTextOf);
    expect(new Set(keys).size).toBe(keys.length);
    expect(keys.every((key) => /^whsec_[A-Za-z0-9+/]{43}=$/.test(key))).toBe(true);
  });
});

test('another secret of the installation than the store knows is refused', async () => {
  const store = memoryEventStore();
  const secret = await openWebhookSecret(store, INSTALLATION);
  expect(await secret()).toBe(INSTALLATION);
  await expect(openWebhookSecret(store, `${INSTALLATION}!`)).rejects.toThrow('WEBHOOK_SECRET');
});
