/** Positions of the log in requests: parameters, and the header of a reader that comes back. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Position } from '../shared/event-store/port.ts';
import { reject } from '../shared/http/errors.ts';
import { type Read, soleHeader } from '../shared/http/request.ts';

/** In any store; the store itself checks whether the log has such a position. */
export const POSITION = /^[A-Za-z0-9_.:/-]{1,64}$/;
export const NO_POSITION = 'must be start or a position of the log';
export const NO_POSITION_NOR_NOW = 'must be start, now or a position of the log';

export const NO_EVENTS_POSITION = 'must be a position of the log';

export const NO_LAST_ID = `Last-Event-ID ${NO_EVENTS_POSITION}`;

export const startOf = (from: string | undefined): Position | null =>
  from === undefined || from === 'start' ? null : from;

/** Takes precedence over `from`; undefined where there is none. */
export const readLastEventId = ({ raw }: FastifyRequest): Read<string | undefined> => {
  const value = soleHeader(raw.rawHeaders, 'last-event-id');
  return value === null || (value !== undefined && !POSITION.test(value))
    ? { ok: false, details: [NO_LAST_ID] }
    : { ok: true, value };
};

/** For the RangeError of a place that the log does not have. Throws any other error. */
export const rejectPlace = (reply: FastifyReply, error: unknown, detail: string): FastifyReply => {
  if (!(error instanceof RangeError)) throw error;
  return reject(reply, 'INVALID_REQUEST', [detail]);
};
