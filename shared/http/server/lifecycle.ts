/** What all requests of a server share, and what each of them has of it. */
import type { onRequestHookHandler } from 'fastify';
import type { Principal } from '../auth/principal.ts';
import type { Shares } from './shares.ts';

/** What requests share, and whether the server is on its way out. */
export type Lifecycle = {
  /** Of MAX_IN_FLIGHT. */
  readonly places: Shares;
  /** Of the bytes of responses that are on their way. */
  readonly unread: Shares;
  closing: boolean;
};

declare module 'fastify' {
  interface FastifyRequest {
    /** Who sent it; there behind the authenticate hook (auth/hooks.ts). */
    principal: Principal | undefined;
    /** Whether it has one of the places (places.ts). */
    hasPlace: boolean;
  }
  interface FastifyInstance {
    lifecycle: Lifecycle;
    /** The last `onRequest` hook of a route, behind those that say who sent it (places.ts). */
    takePlace: onRequestHookHandler;
  }
}
