/**
 * Checks the lines of an export one after the other: each by its own hash, against the line before it, in
 * its stream and, where the export is whole, in the log. Used while an export is written and when it is
 * verified later.
 */
import {
  type Completeness,
  type ExportLine,
  expectedChain,
  LINES_START,
} from '../audit/export-lines.ts';
import { GENESIS_HASH } from '../shared/event-store/chain.ts';
import {
  hashReason,
  logReason,
  previousReason,
  revisionReason,
  type StreamEnd,
} from '../shared/event-store/verify-chain.ts';
import { jsonFieldsOf } from '../shared/runtime/json-fields.ts';

/** What is wrong with a line that is not as it was exported. */
export const NOT_ITS_CHAIN = 'it was changed, or a line before it is missing, added or swapped';

/** The check of one export; `reasonFor` returns why a line is broken, or undefined. */
export const lineCheck = (completeness: Completeness) => {
  const ends = new Map<string, StreamEnd>();
  let chain = LINES_START;
  let logHash = GENESIS_HASH;

  const reasonInStream = ({ stream, revision, hash, text }: ExportLine): string | undefined => {
    const end = ends.get(stream);
    ends.set(stream, { revision, hash });
    // The first event of a range may stand in the middle of its stream.
    if (end === undefined && completeness === 'range') return undefined;
    const { previousHash } = jsonFieldsOf(text);
    return revisionReason(revision, end) ?? previousReason(previousHash, end?.hash);
  };

  const reasonInLog = (line: ExportLine): string | undefined => {
    if (completeness !== 'log') return undefined;
    const reason = logReason(line, logHash);
    if (reason === undefined) logHash = line.logHash ?? '';
    return reason;
  };

  return {
    chain: () => chain,
    reasonFor: (line: ExportLine): string | undefined => {
      const changed = hashReason(line);
      if (changed !== undefined) return changed;
      if (line.chain !== expectedChain(line, chain)) return NOT_ITS_CHAIN;
      chain = line.chain;
      return reasonInStream(line) ?? reasonInLog(line);
    },
  };
};
