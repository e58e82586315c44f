/** The manifest of a payment's downloaded events, as `payments export` writes it (docs/audit.md). */

/** @typedef {{ position: string, hash: string, logHash?: string, stream?: string, revision?: number, event?: { stream: string, revision: number }, chain: string }} Line */

/** The chain before the first line. */
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
 * The text of the manifest of an export. Throws SyntaxError where a line is no JSON.
 * @param {Uint8Array<ArrayBuffer>} bytes the export as it came
 * @param {{ paymentId: string, headers: Headers, exportedAt: string }} about the headers of the response
 */
export const manifestText = async (bytes, { paymentId, headers, exportedAt }) => {
  /** @type {Line[]} */
  const lines = new TextDecoder()
    .decode(bytes)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
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
  return `${JSON.stringify(manifest, null, 2)}\n`;
};
