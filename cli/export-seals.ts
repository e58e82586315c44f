/** The seals in an export of the whole log, for the verbs that read one. */
import type { ExportLine } from '../audit/export-lines.ts';
import { GENESIS_HASH } from '../shared/event-store/chain.ts';
import { logReason } from '../shared/event-store/verify-chain.ts';
import { sealsCheck } from '../shared/event-store/verify-seals.ts';
import { CommandFailed } from './command-failed.ts';
import type { Manifest } from './export-manifest.ts';

/** Throws CommandFailed where a key is named for an export of a part, whose seals seal what is not in it. */
export const requireWholeLog = (
  file: string,
  { completeness }: Pick<Manifest, 'completeness'>,
  key: string | undefined,
): void => {
  if (key === undefined || completeness === 'log') return;
  throw new CommandFailed(
    `${file} is no export of the whole log, and seals are of the whole log: leave out --key, or export without a range and for all merchants`,
  );
};

/** Throws CommandFailed where a key is named and no seal is there that it could prove anything by. */
export const requireSeals = (file: string, key: string | undefined, seals: number): void => {
  if (key !== undefined && seals === 0)
    throw new CommandFailed(
      `${file} has no seal, so ${key} proves nothing about it: its seals were taken out, or none was made yet`,
    );
};

/**
 * Whether the log hashes of an export lead from line to line and fit its seals. The events themselves are
 * for who reads them: one that was changed with every hash right does not fit the next seal.
 */
export const exportSeals = (
  { completeness, log }: Pick<Manifest, 'completeness' | 'log'>,
  publicKey: string | undefined,
) => {
  const seals = sealsCheck({ log, publicKey });
  let logHash = GENESIS_HASH;
  let misfit: string | undefined;
  return {
    pass: (line: ExportLine): void => {
      if (completeness !== 'log' || misfit !== undefined) return;
      const reason = logReason(line, logHash) ?? seals.reasonFor(line);
      logHash = line.logHash ?? '';
      if (reason !== undefined) misfit = `position ${line.position}: ${reason}`;
    },
    count: () => seals.found().seals,
    /** Once every line was passed: why the export does not fit its seals; undefined where it does. */
    misfit: () => misfit ?? (completeness === 'log' ? seals.missing()?.reason : undefined),
  };
};
