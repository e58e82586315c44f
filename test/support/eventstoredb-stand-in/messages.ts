/** Stream names and events as the generated stubs carry them. */
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { Proposed } from './log.ts';
import type { Stored } from './stored.ts';

const { ReadResp } = streamsPb;
const { StreamIdentifier, UUID } = sharedPb;

const TICKS_PER_MS = 10_000n;
const TOMBSTONE_REVISION = '9223372036854775807';

export const nameOf = (identifier: InstanceType<typeof StreamIdentifier> | undefined): string =>
  Buffer.from(identifier?.getStreamName_asU8() ?? []).toString('utf8');

export const identifierOf = (stream: string) =>
  new StreamIdentifier().setStreamName(Uint8Array.from(Buffer.from(stream, 'utf8')));

type ProposedMessage = InstanceType<
  typeof streamsPb.AppendReq.ProposedMessage | typeof streamsPb.BatchAppendReq.ProposedMessage
>;

/** What a writer sends of an event, in an append of its own or in a batch. */
export const proposedOf = (stream: string, message: ProposedMessage): Proposed => ({
  stream,
  id: message.getId()?.getString() ?? '',
  type: message.getMetadataMap().get('type') ?? '',
  contentType: message.getMetadataMap().get('content-type') ?? '',
  data: message.getData_asB64(),
  metadata: message.getCustomMetadata_asB64(),
  created: Date.now(),
});

export function messageOf(event: Stored): InstanceType<typeof ReadResp> {
  const recorded = new ReadResp.ReadEvent.RecordedEvent();
  recorded.setId(new UUID().setString(event.id));
  recorded.setStreamIdentifier(identifierOf(event.stream));
  recorded.setStreamRevision(
    event.type === '$streamDeleted' ? TOMBSTONE_REVISION : String(event.revision),
  );
  recorded.setCommitPosition(String(event.position));
  recorded.setPreparePosition(String(event.position));
  recorded.getMetadataMap().set('type', event.type);
  recorded.getMetadataMap().set('content-type', event.contentType);
  recorded.getMetadataMap().set('created', String(BigInt(event.created) * TICKS_PER_MS));
  recorded.setData(event.data);
  recorded.setCustomMetadata(event.metadata);
  const read = new ReadResp.ReadEvent().setEvent(recorded);
  return new ReadResp().setEvent(read.setCommitPosition(String(event.position)));
}
