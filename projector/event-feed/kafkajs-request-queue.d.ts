/** The inner part of kafkajs that kafka-connection.ts corrects; the package has no types for it. */
declare module 'kafkajs/src/network/requestQueue/index.js' {
  type RequestQueue = { pending: unknown[]; scheduleCheckPendingRequests(): void };
  const RequestQueue: { prototype: RequestQueue };
  export default RequestQueue;
}
