/** A payment's downloaded events and their manifest, as `payments export` writes both (docs/audit.md). */

/** @typedef {{ position: string, hash: string, logHash?: string, stream?: string, revision?: number, event?: { stream: string, revision: number }, chain: string }} Line */

const LINES_START = '0'.repeat(64);

/** @param {Line} line */
const headOf = ({ position, hash, logHash, stream, revision, event }) => ({
  position,
  stream: String(stream ?? event?.stream ?? ''),
  revision: Number(revision ?? event?.revision ?? -1),
  hash,
  ...(logHash !== undefined && { logHash }),
});

/** @param {Uint8Array<ArrayBuffer>} bytes */
const sha256Of = async (bytes) => {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('');
};

/**
 * The file of an export and the text of its manifest. A line that names a break is no event and stays out.
 * Throws SyntaxError where a line is no JSON.
 * @type {(received: Uint8Array<ArrayBuffer>, about: { paymentId: string, headers: Headers, exportedAt: string, sign?: (manifest: object) => Promise<unknown> }) => Promise<{ bytes: Uint8Array<ArrayBuffer>, manifest: string }>}
 */
export const exportFiles = async (received, { paymentId, headers, exportedAt, sign }) => {
  const texts = new TextDecoder()
    .decode(received)
    .split('\n')
    .filter((text) => text !== '' && !('broken' in JSON.parse(text)));
  const bytes = new TextEncoder().encode(texts.map((text) => `${text}\n`).join(''));
  /** @type {Line[]} */
  const lines = texts.map((text) => JSON.parse(text));
  const [first, last] = [lines[0], lines.at(-1)];
  const merchant = headers.get('export-merchant');
  const manifest = {
    format: 'payments-export',
    version: 1,
    exportedAt,
    ...(headers.has('export-log') && { log: headers.get('export-log') }),
    ...(merchant !== null && { merchantId: decodeURIComponent(merchant) }),
    range: { paymentId },
    completeness: headers.get('export-completeness'),
    guarantee: headers.get('export-guarantee'),
    count: lines.length,
    first: first === undefined ? null : { position: first.position },
    head: last === undefined ? null : headOf(last),
    chain: last?.chain ?? LINES_START,
    bytes: bytes.length,
    sha256: await sha256Of(bytes),
  };
  const signature = await sign?.(manifest);
  return { bytes, manifest: `${JSON.stringify({ ...manifest, signature }, null, 2)}\n` };
};
