/** What is signed and sent, and what an endpoint's events make of it. Pure. */
import { describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import type { WebhookEvent } from '../../shared/payment/webhook-events.ts';
import {
  type Endpoint,
  endpointStreamOf,
  foldEndpoints,
  liveSecretNumbers,
} from '../../shared/webhooks/endpoints.ts';
import { messageTypeOf } from '../../shared/webhooks/message.ts';
import {
  endpointKey,
  listenKey,
  openWebhookSecret,
  secretTextOf,
  signedHeaders,
} from '../../shared/webhooks/signer.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import { captured, newEvent } from '../support/payment-events.ts';

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

  const [first, second] = [1, 2].map((n) => endpointKey(INSTALLATION, endpointId, n));
  const body = '{"type":"payment.captured","data":{"name":"Zoë 🙂"}}';
  const headers = signedHeaders([second as Buffer, first as Buffer], 'evt_1', Date.now(), body);
  const libraryOf = (key: Buffer | undefined) => new Webhook(secretTextOf(key as Buffer));

  test('while a secret is rotated both verify', () => {
    for (const key of [first, second]) {
      expect(libraryOf(key).verify(body, headers)).toEqual(JSON.parse(body));
    }
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

test('the authorization of a sale is not sent, as no GET ever shows it', () => {
  const typeOf = (captureNow: boolean) =>
    messageTypeOf({ type: 'PaymentAuthorized' }, { captureNow });
  expect([typeOf(false), typeOf(true)]).toEqual(['payment.authorized', undefined]);
  expect(messageTypeOf({ type: 'PaymentRefundRequested' }, { captureNow: true })).toBeUndefined();
});

const created: WebhookEvent = {
  type: 'WebhookEndpointCreated',
  data: {
    ...{ endpointId, merchantId: 'm_1', url: 'https://shop.example/hook' },
    ...{ apiVersion: 'v1', after: '7' },
  },
};

describe("a merchant's endpoints", () => {
  const fold = async (events: WebhookEvent[]): Promise<Endpoint[]> => {
    const store = memoryEventStore();
    const stream = endpointStreamOf('m_1');
    await store.append(
      stream,
      'none',
      events.map((event) => ({ ...newEvent(captured()), event })),
    );
    return foldEndpoints(await store.readStream(stream));
  };

  test('a change leaves the other fields, and a deleted one is gone', async () => {
    const [changed] = await fold([
      created,
      { type: 'WebhookEndpointChanged', data: { endpointId, description: 'new' } },
      { type: 'WebhookEndpointDisabled', data: { endpointId, reason: 'GONE' } },
    ]);
    expect(changed).toMatchObject({
      url: 'https://shop.example/hook',
      description: 'new',
      after: '7',
      disabled: { reason: 'GONE' },
    });
    expect(await fold([created, { type: 'WebhookEndpointDeleted', data: { endpointId } }])).toEqual(
      [],
    );
  });

  test('the old secret signs until its time is over, and not after it', () => {
    const rotated = { secretNumber: 3, oldSecretExpiresAt: '2026-11-22T12:00:00.000Z' };
    const at = Date.parse(rotated.oldSecretExpiresAt);
    expect([at - 1, at].map((ms) => liveSecretNumbers(rotated, ms))).toEqual([[3, 2], [3]]);
  });
});
