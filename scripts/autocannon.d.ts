/** The part of autocannon that the bench uses; the package brings no types. */
declare module 'autocannon' {
  type Request = {
    method: string;
    path: string;
    headers: Record<string, string>;
    body?: string;
    onResponse?: (status: number, body: string) => void;
  };
  type Client = { setRequests(requests: Request[]): void };
  type Options = {
    url: string;
    connections: number;
    duration: number;
    setupClient: (client: Client) => void;
  };
  type Result = {
    requests: { total: number; average: number };
    latency: { p99: number };
    non2xx: number;
    errors: number;
    timeouts: number;
  };
  export default function autocannon(options: Options): Promise<Result>;
}
