/** The server's frequent messages: the client's classes would take several times as long (ADR-0007). */
import protobuf from 'protobufjs';
import type { LogPosition } from './records.ts';

const { root } = protobuf.parse(`
  syntax = "proto3";
  message Empty {}
  message Numbers { int64 most = 1; int64 least = 2; }
  message Id { Numbers numbers = 1; string text = 2; }
  message Stream { string name = 3; }
  message Position { uint64 commit = 1; uint64 prepare = 2; }

  message Append { Id id = 1; Options options = 2; repeated Proposed batch = 3; bool isFinal = 4; }
  message Options { Stream stream = 1; oneof expected { uint64 revision = 2; Empty none = 3; } }
  message Proposed { Id id = 1; map<string, string> headers = 2; bytes metadata = 3; bytes data = 4; }

  message Appended { Id id = 1; Success success = 3; }
  message Success { uint64 revision = 1; Position position = 3; }

  message ReadRequest { ReadOptions options = 1; }
  message ReadOptions {
    From all = 2; int32 direction = 3; oneof many { uint64 count = 5; Empty subscription = 6; }
    oneof which { Filter filter = 7; Empty everything = 8; } IdForm ids = 9;
  }
  message From { oneof place { Position position = 1; Empty start = 2; Empty end = 3; } }
  message Filter { Names streams = 1; Names types = 2; uint32 max = 3; uint32 interval = 5; }
  message Names { repeated string prefixes = 2; }
  message IdForm { Empty text = 2; }

  message Read { Resolved resolved = 1; Empty confirmed = 2; Empty caughtUp = 8; Empty fellBehind = 9; }
  message Resolved { Event event = 1; }
  message Event {
    Id id = 1; Stream stream = 2; uint64 revision = 3; uint64 prepare = 4; uint64 commit = 5;
    map<string, string> headers = 6; bytes metadata = 7; bytes data = 8;
  }
`);
export const appendMessage: protobuf.Type = root.lookupType('Append');
export const appendedMessage: protobuf.Type = root.lookupType('Appended');
export const readRequestMessage: protobuf.Type = root.lookupType('ReadRequest');
export const readMessage: protobuf.Type = root.lookupType('Read');

export type Sent64 = { high: number; low: number };
export type SentId = { text: string; numbers: { most: Sent64; least: Sent64 } | null } | null;
export type SentPosition = { commit: Sent64; prepare: Sent64 };

export const bigintOf = ({ high, low }: Sent64): bigint =>
  (BigInt(high >>> 0) << 32n) + BigInt(low >>> 0);

const hexOf = (number: Sent64): string => bigintOf(number).toString(16).padStart(16, '0');

/** The server sends text or two numbers; empty where there is no id. */
export const idOf = (id: SentId): string => {
  if (!id?.numbers) return id?.text ?? '';
  const hex = hexOf(id.numbers.most) + hexOf(id.numbers.least);
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
};

export const serverPosition = ({ commit, prepare }: SentPosition): LogPosition => ({
  commit: bigintOf(commit),
  prepare: bigintOf(prepare),
});
