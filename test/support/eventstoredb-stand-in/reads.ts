/** Reads of a stream and of the whole log, inclusive, and subscriptions, exclusive. */
import { setTimeout as delay } from 'node:timers/promises';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import grpc, { type ServerWritableStream } from '@grpc/grpc-js';
import {
  accessDenied,
  type Drop,
  type Fault,
  type Faults,
  SLOW_MS,
  statusError,
  streamDeleted,
} from './faults.ts';
import { indexAt, type Log } from './log.ts';
import { messageOf, nameOf } from './messages.ts';
import type { Stored } from './stored.ts';

const { ReadResp } = streamsPb;
type ReadReq = InstanceType<typeof streamsPb.ReadReq>;
type ReadOptions = NonNullable<ReturnType<ReadReq['getOptions']>>;
type ReadCall = ServerWritableStream<ReadReq, InstanceType<typeof ReadResp>>;

const FORWARDS = 0;
/** Of a read that is cut. */
const CUT_EVENTS = 2;
/** Between two events that are sent in parts of their own. */
const PART_MS = 1;

function streamPage(log: Log, options: ReadOptions): Stored[] | undefined {
  const stream = options.getStream();
  const name = nameOf(stream?.getStreamIdentifier());
  const stored = log.streams.get(name);
  if (stored === undefined || log.removed.isSoftDeleted(name)) return undefined;
  const begin = log.removed.beginOf(name);
  const count = Number(options.getCount());
  const revision = Number(stream?.getRevision() ?? 0);
  if (options.getReadDirection() === FORWARDS) {
    const from = stream?.hasRevision() ? revision : stream?.hasEnd() ? stored.length : 0;
    return stored.slice(Math.max(begin, from), Math.max(begin, from) + count);
  }
  const end = stream?.hasRevision() ? revision + 1 : stream?.hasEnd() ? stored.length : 1;
  return stored.slice(Math.max(begin, end - count), Math.max(begin, end)).reverse();
}

const filterOf = (options: ReadOptions): ((event: Stored) => boolean) => {
  const filter = options.getFilter();
  const types = filter?.getEventType()?.getPrefixList() ?? [];
  const streams = filter?.getStreamIdentifier()?.getPrefixList() ?? [];
  const fits = (name: string, prefixes: string[]): boolean =>
    prefixes.length === 0 || prefixes.some((prefix) => name.startsWith(prefix));
  return ({ stream, type }) => fits(stream, streams) && fits(type, types);
};

/** Forwards with the event at the position, backwards without it; of a filter so many that fit. */
function logPage({ all }: Log, options: ReadOptions): Stored[] {
  const from = options.getAll();
  const position = from?.getPosition();
  const count = Number(options.getCount());
  const matches = filterOf(options);
  const at =
    position === undefined ? undefined : indexAt(all, BigInt(position.getCommitPosition()));
  const place = at ?? (from?.hasEnd() ? all.length : 0);
  const [step, first] = options.getReadDirection() === FORWARDS ? [1, place] : [-1, place - 1];
  const found: Stored[] = [];
  for (let index = first; found.length < count; index += step) {
    const event = all[index];
    if (event === undefined) break;
    if (matches(event)) found.push(event);
  }
  return found;
}

const caughtUp = () => new ReadResp().setCaughtUp(new ReadResp.CaughtUp());

/** `count` is told each call as it arrives, a read of the whole log as both, and each event sent. */
export function makeReads(
  log: Log,
  faults: Faults,
  count: (kind: 'read' | 'readAll' | 'subscribe' | 'sent') => void,
  marksEachEvent = false,
) {
  const subscribers = new Map<ReadCall, () => void>();
  let refusesAll = false;

  function responseRead(call: ReadCall, page: Stored[] | undefined, isCut: boolean): void {
    if (page === undefined) {
      const identifier = call.request.getOptions()?.getStream()?.getStreamIdentifier();
      const missing = new ReadResp.StreamNotFound().setStreamIdentifier(identifier);
      call.write(new ReadResp().setStreamNotFound(missing));
    }
    for (const event of page?.slice(0, isCut ? CUT_EVENTS : undefined) ?? []) {
      count('sent');
      call.write(messageOf(event));
    }
    if (!isCut) call.end();
  }

  function responseSubscription(call: ReadCall, request: ReadOptions): void {
    const matches = filterOf(request);
    const position = request.getAll()?.getPosition();
    const after = position === undefined ? -1n : BigInt(position.getCommitPosition());
    call.write(new ReadResp().setConfirmation(new ReadResp.SubscriptionConfirmation()));
    const send = (event: Stored): void => {
      if (!matches(event)) return;
      count('sent');
      faults.whenThawed(() => void call.write(messageOf(event)));
    };
    for (const event of log.all.slice(indexAt(log.all, after + 1n))) send(event);
    call.write(caughtUp());
    let sending = Promise.resolve();
    const sendAlone = async (event: Stored): Promise<void> => {
      await delay(PART_MS);
      if (!subscribers.has(call)) return;
      send(event);
      faults.whenThawed(() => void call.write(caughtUp()));
    };
    const live = (event: Stored): void => {
      if (!marksEachEvent) send(event);
      else if (matches(event)) sending = sending.then(() => sendAlone(event));
    };
    log.listeners.add(live);
    const leave = (): void => {
      log.listeners.delete(live);
      subscribers.delete(call);
    };
    subscribers.set(call, leave);
    call.on('cancelled', leave);
    call.on('close', leave);
  }

  /** True when the fault has dealt with the call. */
  function failedRead(call: ReadCall, fault: Fault | undefined): boolean {
    if (fault === 'silent') return true;
    if (fault === 'clean end') call.end();
    else if (fault === 'reset') faults.reset();
    else if (fault === 'unavailable') call.emit('error', faults.unavailable());
    else if (fault === 'not leader') call.emit('error', faults.notLeader());
    else return false;
    return true;
  }

  return {
    read(call: ReadCall): void {
      const request = call.request.getOptions();
      if (request === undefined) return void call.end();
      const kind = request.hasSubscription() ? 'subscribe' : 'read';
      count(kind);
      if (kind === 'read' && !request.hasStream()) count('readAll');
      call.on('error', () => undefined);
      if (refusesAll && !request.hasStream()) return void call.emit('error', accessDenied());
      faults.whenThawed(() => {
        const fault = faults.next(kind) as Fault | undefined;
        if (failedRead(call, fault)) return;
        const stream = nameOf(request.getStream()?.getStreamIdentifier());
        if (log.removed.isRefused(stream)) return void call.emit('error', accessDenied());
        if (log.removed.isTombstoned(stream)) return void call.emit('error', streamDeleted(stream));
        const response = (): void => {
          if (kind === 'subscribe') responseSubscription(call, request);
          else
            responseRead(
              call,
              request.hasStream() ? streamPage(log, request) : logPage(log, request),
              fault === 'cut',
            );
        };
        if (fault === 'slow') setTimeout(response, SLOW_MS);
        else response();
      });
    },
    /** Whether $all, read or subscribed to, is refused from now on. */
    refuseAll(on: boolean): void {
      refusesAll = on;
    },
    /** Ends the running subscriptions. */
    drop(how: Drop): void {
      if (how === 'reset') return void faults.reset();
      for (const [call, leave] of [...subscribers]) {
        leave();
        if (how === 'clean end') call.end();
        else if (how === 'not leader') call.emit('error', faults.notLeader());
        else if (how === 'too slow') {
          const details =
            'Operation timed out: Consumer too slow to handle event while live. Client resubscription required.';
          call.emit('error', statusError(grpc.status.ABORTED, details));
        }
      }
    },
  };
}
