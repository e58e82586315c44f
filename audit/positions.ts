/** Positions of the log in requests: the parameter `from`, and the header of a reader that comes back. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Position } from '../shared/event-store/port.ts';
import { reject } from '../shared/http/errors.ts';
import { soleHeader } from '../shared/http/headers.ts';
import type { Read } from '../shared/http/route.ts';

/** The form of a position in any store. Whether the log has such a position is checked by the store. */
export const POSITION = /^[A-Za-z0-9_.:/-]{1,64}$/;
/** What is wrong with a `from`. */
export const NO_POSITION = 'must be start or a position of the log';
/** The same where a stream may begin at its end. */
export const NO_POSITION_NOR_NOW = 'must be start, now or a position of the log';

/** What is wrong with the `position` of a kept head. */
export const NO_EVENTS_POSITION = 'must be a position of the log';

const NO_LAST_ID = `Last-Event-ID ${NO_EVENTS_POSITION}`;

/** The position that a `from` parameter names; null is the start of the log. */
export const startOf = (from: string | undefined): Position | null =>
  from === undefined || from === 'start' ? null : from;

/** The header `Last-Event-ID`, which takes precedence over `from`; undefined where there is none. */
export const readLastEventId = ({ raw }: FastifyRequest): Read<string | undefined> => {
  const value = soleHeader(raw.rawHeaders, 'last-event-id');
  return value === null || (value !== undefined && !POSITION.test(value))
    ? { ok: false, details: [NO_LAST_ID] }
    : { ok: true, value };
};

const rejected = (reply: FastifyReply, error: unknown, detail: string): FastifyReply => {
  if (!(error instanceof RangeError)) throw error;
  return reject(reply, 'INVALID_REQUEST', [detail]);
};

/** Rejects a `from` that is no position of the store (its RangeError). Throws any other error on. */
export const rejectFrom = (reply: FastifyReply, error: unknown): FastifyReply =>
  rejected(reply, error, `from ${NO_POSITION}`);

/** The same for a stream, which begins after `lastId` where there is one. */
export const rejectBeginning = (
  reply: FastifyReply,
  error: unknown,
  lastId: string | undefined,
): FastifyReply =>
  rejected(reply, error, lastId === undefined ? `from ${NO_POSITION_NOR_NOW}` : NO_LAST_ID);

/** The same for the `position` of a kept head. */
export const rejectPosition = (reply: FastifyReply, error: unknown): FastifyReply =>
  rejected(reply, error, `position ${NO_EVENTS_POSITION}`);
