/** Kafka over TLS with a login, on a real broker's listeners of that kind. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { kafkaFeed } from '../../topics/kafka/kafka.ts';
import type { KafkaOptions } from '../../topics/kafka/kafka-connection.ts';
import type { EventFeed } from '../../topics/port.ts';
import { describeDriver } from '../support/describe-driver.ts';

const env = (name: string): string => process.env[name] ?? '';
const whyNot =
  env('KAFKA_LOGIN_BROKERS') === ''
    ? 'KAFKA_LOGIN_BROKERS is not set; npm run engines -- up starts a broker with a login'
    : undefined;

const ca = (listener: string): string =>
  readFileSync(join(env('KAFKA_LOGIN_FOLDER'), `${listener}.pem`), 'utf8');
const login = (mechanism = 'SCRAM-SHA-512') => ({
  mechanism,
  username: env('KAFKA_LOGIN_USERNAME'),
  password: env('KAFKA_LOGIN_PASSWORD'),
});

describeDriver('Kafka with TLS and a login', { name: 'kafka', skip: whyNot }, () => {
  const opened: EventFeed[] = [];
  afterAll(() => Promise.all(opened.map((feed) => feed.close())));
  const feedWith = (options: Partial<KafkaOptions>): EventFeed => {
    const feed = kafkaFeed({
      brokers: [env('KAFKA_LOGIN_BROKERS')],
      topicPrefix: `test-${crypto.randomUUID()}`,
      tls: { ca: ca('LOGIN') },
      sasl: login(),
      ...options,
    });
    opened.push(feed);
    return feed;
  };

  test.each(['SCRAM-SHA-256', 'SCRAM-SHA-512'])(
    'topics are made and messages are sent with %s over TLS',
    async (mechanism) => {
      const feed = feedWith({ sasl: login(mechanism) });
      expect(await feed.partitions()).toEqual({ events: 6, state: 6, seals: 1 });
      const message = { topic: 'events' as const, partition: 0, key: 'pay_1', value: '{}' };
      await feed.publish('events', [{ ...message, headers: {}, timestampMs: Date.now() }]);
    },
  );

  // At once: each is tried again for some seconds before it fails.
  test.concurrent.each<[string, () => Partial<KafkaOptions>, string]>([
    [
      'a wrong password',
      () => ({ sasl: { ...login(), password: 'wrong' } }),
      'the brokers reject the login',
    ],
    [
      'a mechanism that the brokers do not have',
      () => ({ sasl: login('PLAIN') }),
      'the brokers reject the login',
    ],
    [
      'an expired certificate',
      () => ({ brokers: [env('KAFKA_EXPIRED_BROKERS')], tls: { ca: ca('EXPIRED') } }),
      "the broker's certificate has expired",
    ],
    [
      'a certificate of an unknown authority',
      () => ({ tls: { ca: undefined } }),
      "the broker's certificate is not signed by an authority of KAFKA_CA_FILE",
    ],
    [
      'no TLS on a port that wants it',
      () => ({ tls: undefined, sasl: undefined }),
      'could not find or make the topics',
    ],
  ])('%s is one clear line without a password', async (_, options, words) => {
    const line = await feedWith(options())
      .partitions()
      .then(
        () => 'it connected',
        (error: Error) => error.message,
      );
    expect(line).toContain(words);
    expect(line).not.toContain('\n');
    expect(line).not.toContain(env('KAFKA_LOGIN_PASSWORD'));
  });
});
