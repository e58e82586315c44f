/**
 * What the Kafka driver promises where there is no broker, or one that says nothing: every call
 * ends within its bound, and nothing is left behind. The servers here are sockets that never answer.
 */
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { Partitioners } from 'kafkajs';
import { kafkaFeed } from '../../topics/kafka/kafka.ts';
import { partitionOf } from '../../topics/messages.ts';
import { FeedUnavailable } from '../../topics/port.ts';
import { freePort } from '../support/free-port.ts';
import { ENDS_MS_MAX } from '../support/time-bounds.ts';
import { until, within } from '../support/until.ts';

const servers: Server[] = [];
const sockets = new Set<Socket>();
const listen = async (onSocket: (socket: Socket) => void): Promise<string> => {
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    onSocket(socket);
  });
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `127.0.0.1:${Object(server.address()).port}`;
};
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  for (const server of servers.splice(0)) await new Promise((done) => server.close(done));
});

const shortMs = { connect: 100, request: 200, admin: 400, send: 400, close: 100 };
const feedTo = (...brokers: string[]) =>
  kafkaFeed({ brokers, topicPrefix: 'test', timeoutsMs: shortMs });

describe('the Kafka feed without a broker', () => {
  test('rejects within its bound where nothing listens', async () => {
    const feed = feedTo(`127.0.0.1:${await freePort()}`);
    await within(ENDS_MS_MAX, async () => {
      await expect(feed.partitions()).rejects.toThrow(FeedUnavailable);
      await expect(feed.publish('events', [])).rejects.toThrow(FeedUnavailable);
    });
    await feed.close();
  });

  test('gives up on a broker that accepts and sends nothing, and closes its connections', async () => {
    const feed = feedTo(await listen((socket) => socket.resume()));
    await within(ENDS_MS_MAX, async () => {
      await expect(feed.partitions()).rejects.toThrow(/Kafka: could not find or make the topics/);
      await expect(feed.publish('events', [])).rejects.toThrow(/Kafka: could not connect/);
    });
    // A client that was given up must not come back by itself, or it would send old messages.
    await until('no connection is left', () => sockets.size === 0);
    await feed.close();
    await expect(feed.partitions()).rejects.toThrow('the feed is closed');
  });

  test('closing it ends a call under way', async () => {
    const feed = kafkaFeed({
      brokers: [await listen((socket) => socket.resume())],
      topicPrefix: 'test',
      timeoutsMs: { close: 50 },
    });
    const call = expect(feed.partitions()).rejects.toThrow(FeedUnavailable);
    await until('connected', () => sockets.size > 0);
    await feed.close();
    await call;
  });
});

describe('the partition of a payment', () => {
  const kafkas = Partitioners.DefaultPartitioner();
  const byKafka = (key: string, partitions: number): number =>
    kafkas({
      topic: 'events',
      partitionMetadata: Array.from({ length: partitions }, (_, partitionId) => ({
        partitionId,
        leader: 1,
        partitionErrorCode: 0,
        replicas: [],
        isr: [],
      })),
      message: { key, value: '' },
    });

  test.each([1, 3, 6, 100])("is the one Kafka's own clients choose, of %d", (partitions) => {
    for (let n = 0; n < 500; n += 1) {
      const key = `${n.toString(36)}é`.repeat(n % 5) + 'pay_01J'.slice(0, n % 8);
      expect([key, partitionOf(key, partitions)]).toEqual([key, byKafka(key, partitions)]);
    }
  });
});
