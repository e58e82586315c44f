/**
 * A reader of payments.events.v1 that stores every event once and detects a missing one:
 *   npx node examples/consumer.ts 127.0.0.1:9092 events.jsonl
 * npx takes the Node of the packages; one of your own reads TypeScript from 22.18 on.
 * With a login: KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD.
 * It needs kafkajs and nothing else of this project. Exit code 3: messages are missing.
 */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { Kafka, logLevel } from 'kafkajs';

const [brokers = '127.0.0.1:9092', file = 'events.jsonl', topic = 'payments.events.v1'] =
  process.argv.slice(2);
const seen = new Set<string>();
const next = new Map<number, number>();

const remember = (partition: number, event: { id: string; partitionsequence: string }): void => {
  seen.add(event.id);
  next.set(partition, Number(event.partitionsequence) + 1);
};

// Resume from the file: its events also say how far this reader is, so a crash cannot separate the
// two (in a database: one transaction). A last line that was cut off is dropped: Kafka sends it again.
const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];
writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
for (const line of lines) remember(JSON.parse(line).partition, JSON.parse(line).event);

const { KAFKA_SASL_USERNAME: username, KAFKA_SASL_PASSWORD: password } = process.env;
const kafka = new Kafka({
  brokers: brokers.split(','),
  logLevel: logLevel.ERROR,
  ...(username && password && { sasl: { mechanism: 'plain', username, password } }),
});
// The partitions of a killed reader are assigned again after six seconds.
const group = { groupId: `example-${file}`, sessionTimeout: 6_000, heartbeatInterval: 2_000 };
const consumer = kafka.consumer(group);
process.once('SIGTERM', () => consumer.disconnect().then(() => process.exit(0)));
await consumer.connect();
await consumer.subscribe({ topic, fromBeginning: true });
await consumer.run({
  eachMessage: async ({ partition, message }) => {
    const event = JSON.parse(String(message.value));
    if (seen.has(event.id)) return; // A repeated event.
    const expected = next.get(partition) ?? 0;
    if (Number(event.partitionsequence) !== expected) {
      console.error(
        `partition ${partition}: ${event.partitionsequence} came, ${expected} is missing`,
      );
      process.exit(3);
    }
    appendFileSync(file, `${JSON.stringify({ partition, event })}\n`);
    remember(partition, event);
  },
});
