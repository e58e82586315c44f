/**
 * A reader of payments.events.v1 that counts every event once and knows when it missed one:
 *   node examples/consumer.ts 127.0.0.1:9092 events.jsonl
 * It needs kafkajs and nothing else of this project. Exit code 3: messages are missing.
 */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { Kafka, logLevel } from 'kafkajs';

const [brokers = '127.0.0.1:9092', file = 'events.jsonl', topic = 'payments.events.v1'] =
  process.argv.slice(2);
const seen = new Set<string>();
const next = new Map<number, number>();

/** Remembers an event; what it says is the same however often it is sent. */
const remember = (partition: number, event: { id: string; partitionsequence: string }): void => {
  seen.add(event.id);
  next.set(partition, Number(event.partitionsequence) + 1);
};

// Resume: what was read says how far. They are one file, so no crash leaves one without the other;
// in a database they are one transaction. A last line without its end is dropped: it comes again.
const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];
writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
for (const line of lines) remember(JSON.parse(line).partition, JSON.parse(line).event);

const kafka = new Kafka({ brokers: brokers.split(','), logLevel: logLevel.ERROR });
// A reader that was killed is replaced after six seconds.
const group = { groupId: `example-${file}`, sessionTimeout: 6_000, heartbeatInterval: 2_000 };
const consumer = kafka.consumer(group);
process.once('SIGTERM', () => consumer.disconnect().then(() => process.exit(0)));
await consumer.connect();
await consumer.subscribe({ topic, fromBeginning: true });
await consumer.run({
  eachMessage: async ({ partition, message }) => {
    const event = JSON.parse(String(message.value));
    if (seen.has(event.id)) return; // Sent again.
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
