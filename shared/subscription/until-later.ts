import type { FastifyReply } from 'fastify';
import { REJECTION_HEADER, reject } from '../http/errors.ts';
import { StandingBy } from './errors.ts';

/**
 * Responds 503 with the error's code where the work cannot be done now: `whyLater` gives the reason, or
 * undefined for an error that is not one of these, which is thrown on.
 */
export const orUntilLater = async (
  reply: FastifyReply,
  respond: () => Promise<FastifyReply>,
  whyLater: (error: unknown) => string | undefined = () => undefined,
): Promise<FastifyReply> => {
  try {
    return await respond();
  } catch (error) {
    const why =
      error instanceof StandingBy
        ? 'this projector stands by, or is stopping; ask the one that follows the log'
        : whyLater(error);
    if (why === undefined) throw error;
    // The code tells apart the reasons under one error of the contract.
    const headers = { 'retry-after': '5', [REJECTION_HEADER]: Object(error).code };
    return reject(reply, 'SERVICE_UNAVAILABLE', [why], headers);
  }
};
