/** The reference of the topics, made from the schemas of the messages: JSON Schemas and the AsyncAPI document. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { PAYMENT_EVENT_TYPES } from '../../shared/payment/events.ts';
import { TOPIC_PREFIX_DEFAULT } from '../../shared/runtime/settings/table.ts';
import { PARTITIONS_DEFAULT, type Topic, topicName } from '../../topics/port.ts';
import {
  envelope,
  MESSAGE_VERSIONS,
  type MessageType,
  publicEventData,
  publicSealData,
  publicState,
} from '../../topics/schemas.ts';

const read = (file: string) => parse(readFileSync(join(import.meta.dirname, file), 'utf8'));

const MEANINGS: Partial<Record<MessageType, string>> = read('meanings.yaml');

/** Without messages; `topicConfiguration` belongs into the bindings. */
const DOCUMENT: {
  channels: Record<Topic, { description: string; topicConfiguration: object }>;
  components: { schemas: { Headers: { properties: object } } };
} & Record<string, unknown> = read('asyncapi.yaml');

const meaningOf = (type: MessageType): string => {
  const meaning = MEANINGS[type];
  if (meaning === undefined) throw new Error(`meanings.yaml says nothing of ${type}`);
  return meaning;
};

const SEAL_TYPES = Object.keys(publicSealData) as (keyof typeof publicSealData)[];
const DATA: Record<MessageType, z.ZodType> = {
  PaymentState: publicState,
  ...publicEventData,
  ...publicSealData,
};

const schemaFile = (name: string, version: number): string => `${name}.v${version}.json`;

const schemaText = (name: string, version: number, schema: z.ZodType, description: string) => {
  // The input form allows unknown fields: a reader must accept fields of later versions.
  const { $schema, ...rest } = z.toJSONSchema(schema, { target: 'draft-2020-12', io: 'input' });
  const $id = `urn:payments:schema:${name}:${version}`;
  const about = { $schema, $id, title: `${name}, version ${version}`, description };
  return `${JSON.stringify({ ...about, ...rest }, null, 2)}\n`;
};

const messageOf = (type: MessageType) => {
  const version = MESSAGE_VERSIONS[type];
  const properties = {
    type: { const: `payments.${type}.v${version}` },
    dataschema: { const: `urn:payments:schema:${type}:${version}` },
    data: { $ref: `./schemas/${schemaFile(type, version)}` },
  };
  const key = { type: 'string', description: 'The subject: the paymentId, or log' };
  return {
    name: `payments.${type}.v${version}`,
    title: type,
    summary: meaningOf(type),
    contentType: 'application/cloudevents+json',
    headers: { $ref: '#/components/schemas/Headers' },
    payload: { allOf: [{ $ref: './schemas/Envelope.v1.json' }, { type: 'object', properties }] },
    bindings: { kafka: { key } },
  };
};

const channelOf = (topic: Topic, types: readonly MessageType[]) => {
  const { description, topicConfiguration } = DOCUMENT.channels[topic];
  return {
    address: topicName(TOPIC_PREFIX_DEFAULT, topic),
    description,
    messages: Object.fromEntries(
      types.map((type) => [type, { $ref: `#/components/messages/${type}` }]),
    ),
    bindings: { kafka: { partitions: PARTITIONS_DEFAULT[topic], topicConfiguration } },
  };
};

const types = Object.keys(MESSAGE_VERSIONS) as MessageType[];
const { Headers } = DOCUMENT.components.schemas;
for (const name of Object.keys(envelope.shape))
  if (name !== 'data' && name !== 'datacontenttype')
    Object.assign(Headers.properties, { [`ce_${name}`]: { type: 'string' } });

const asyncApi = (): object => ({
  ...DOCUMENT,
  channels: {
    events: channelOf('events', PAYMENT_EVENT_TYPES),
    state: channelOf('state', ['PaymentState']),
    seals: channelOf('seals', SEAL_TYPES),
  },
  components: {
    messages: Object.fromEntries(types.map((type) => [type, messageOf(type)])),
    schemas: { Headers },
  },
});

const AROUND = 'The CloudEvent around the data of every message.';

export const generatedTopicDocs = (): Record<string, string> => ({
  [`docs/schemas/${schemaFile('Envelope', 1)}`]: schemaText('Envelope', 1, envelope, AROUND),
  ...Object.fromEntries(
    types.map((type) => {
      const version = MESSAGE_VERSIONS[type];
      const description = `The data of ${type}. ${meaningOf(type)}`;
      const text = schemaText(type, version, DATA[type], description);
      return [`docs/schemas/${schemaFile(type, version)}`, text];
    }),
  ),
  'docs/asyncapi.yaml': stringify(asyncApi(), { aliasDuplicateObjects: false, lineWidth: 100 }),
});
