/** The files of an export as `payments export` writes them (docs/audit.md). */

const MANIFEST = '{"manifest":';
const BREAK = '{"broken":';

/**
 * The lines of events, and the manifest that the last line holds; undefined where the export was cut off. A
 * line that names a break is no event and stays out.
 * @param {Uint8Array<ArrayBuffer>} received
 */
export const exportFiles = (received) => {
  const lines = new TextDecoder().decode(received).split('\n');
  const [last = '', rest] = lines.splice(-2);
  if (rest !== '' || !last.startsWith(MANIFEST)) return undefined;
  const { manifest } = JSON.parse(last);
  const events = lines.filter((line) => !line.startsWith(BREAK));
  const bytes = new TextEncoder().encode(events.map((line) => `${line}\n`).join(''));
  if (bytes.length !== manifest.bytes) return undefined;
  return { bytes, manifest: `${JSON.stringify(manifest, null, 2)}\n` };
};
