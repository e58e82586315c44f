/** The log ends before the checkpoint of the served read models, so new ones cannot reach it. */
export class RebuildImpossible extends Error {
  readonly code = 'REBUILD_IMPOSSIBLE';
  override name = 'RebuildImpossible';
}

/** This call began no comparison. */
export class ComparisonRunning extends Error {
  readonly code = 'COMPARISON_RUNNING';
  override name = 'ComparisonRunning';
}
