import type { FastifyReply } from 'fastify';
import { REJECTION_HEADER, reject } from '../http/errors.ts';

/** The errors that end by themselves, by their codes; without a text here, their message is the reason. */
const REASONS = new Map<unknown, string | undefined>([
  ['STANDING_BY', 'this projector stands by, or is stopping; ask the one that follows the log'],
  ['REBUILD_RUNNING', 'a rebuild is under way already; GET /ops/v1/projections says how far it is'],
  ['COMPARISON_RUNNING', undefined],
  ['RELAY_NOT_READY', undefined],
]);

/** Responds 503 with the error's code where the work cannot be done now; throws any other error. */
export const orUntilLater = async (
  reply: FastifyReply,
  respond: () => Promise<FastifyReply>,
): Promise<FastifyReply> => {
  try {
    return await respond();
  } catch (error) {
    const { code, message } = Object(error);
    if (!REASONS.has(code)) throw error;
    // The code tells apart the reasons under one error of the contract.
    const headers = { 'retry-after': '5', [REJECTION_HEADER]: code };
    return reject(reply, 'SERVICE_UNAVAILABLE', [REASONS.get(code) ?? message], headers);
  }
};
