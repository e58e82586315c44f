/** The calls Delete (the stream can go on) and Tombstone (it is gone for good), at any revision. */
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { ServerUnaryCall, sendUnaryData } from '@grpc/grpc-js';
import { streamDeleted } from './faults.ts';
import type { Log } from './log.ts';
import { nameOf } from './messages.ts';

type Call = ServerUnaryCall<
  InstanceType<typeof streamsPb.DeleteReq> | InstanceType<typeof streamsPb.TombstoneReq>,
  object
>;

const { DeleteResp, TombstoneResp } = streamsPb;

/** Both calls over one log. */
export function makeDeletes(log: Log) {
  const responding =
    (work: (stream: string) => void, response: () => object) =>
    ({ request }: Call, callback: sendUnaryData<object>): void => {
      const stream = nameOf(request.getOptions()?.getStreamIdentifier());
      if (log.removed.isTombstoned(stream)) return void callback(streamDeleted(stream));
      work(stream);
      callback(null, response());
    };
  return {
    delete: responding(log.softDelete, () => new DeleteResp()),
    tombstone: responding(log.tombstone, () => new TombstoneResp()),
  };
}
