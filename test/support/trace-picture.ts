/**
 * Draws one trace as SVG: a line for each span, below the span that led to it, by the time of its begin. Pages
 * show it by `<img>`, so no style of theirs reaches it: its colours can be read on white and on black.
 */

/** In pixels. */
const WIDTH = 720;
const STYLE = `<style>
  text { font: 13px system-ui, sans-serif; fill: #24292f; }
  .title { font-weight: 600; font-size: 15px; }
  .grid { stroke: #8c959f; stroke-width: 1; stroke-opacity: 0.35; }
  .a { fill: #0969da; stroke: #0969da; } .b { fill: #bc4c00; stroke: #bc4c00; }
  .c { fill: #1a7f37; stroke: #1a7f37; } .bare { fill: #8c959f; stroke: #8c959f; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .a { fill: #58a6ff; stroke: #58a6ff; } .b { fill: #f0883e; stroke: #f0883e; }
    .c { fill: #56d364; stroke: #56d364; }
  }
</style>`;

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const px = (value: number): string => String(Math.round(value * 10) / 10);

const label = (x: number, y: number, text: string, extra = ''): string =>
  `<text x="${px(x)}" y="${px(y)}"${extra}>${escaped(text)}</text>`;

export type DrawnSpan = {
  id: string;
  parentId: string | undefined;
  name: string;
  process: string;
  startMs: number;
  endMs: number;
};

const KINDS = ['a', 'b', 'c', 'bare'] as const;
const TOP = 70;
const STEP = 24;
const BAR_HEIGHT = 14;
const LEFT = 290;
const RIGHT = 84;
const INDENT = 14;

const inOrder = (spans: readonly DrawnSpan[]): { span: DrawnSpan; depth: number }[] => {
  const sorted = spans.toSorted((a, b) => a.startMs - b.startMs);
  const ids = new Set(sorted.map(({ id }) => id));
  const below = (parent: DrawnSpan | undefined, depth: number): ReturnType<typeof inOrder> =>
    sorted
      .filter(({ parentId }) =>
        parent === undefined ? !ids.has(parentId ?? '') : parentId === parent.id,
      )
      .flatMap((span) => [{ span, depth }, ...below(span, depth + 1)]);
  return below(undefined, 0);
};

const ms = (value: number): string => `${Number(value.toPrecision(2)).toLocaleString('en-US')} ms`;

export const tracePicture = (title: string, spans: readonly DrawnSpan[]): string => {
  if (spans.length === 0) throw new RangeError('a trace without spans has no picture');
  const rows = inOrder(spans);
  const beganMs = Math.min(...spans.map(({ startMs }) => startMs));
  const lengthMs = Math.max(...spans.map(({ endMs }) => endMs)) - beganMs;
  const x = (atMs: number): number =>
    LEFT + ((atMs - beganMs) / Math.max(lengthMs, 0.001)) * (WIDTH - LEFT - RIGHT);
  const processes = [...new Set(rows.map(({ span }) => span.process))];
  const kindOf = (process: string): string => KINDS[processes.indexOf(process)] ?? 'bare';
  const height = TOP + rows.length * STEP + 28;
  const legend = processes.flatMap((process, at) => [
    `<rect class="${kindOf(process)}" x="${16 + at * 150}" y="40" width="12" height="12"/>`,
    label(34 + at * 150, 51, process),
  ]);
  const grid = [0, 0.25, 0.5, 0.75, 1].flatMap((share) => {
    const at = x(beganMs + share * lengthMs);
    const bottom = TOP + rows.length * STEP;
    return [
      `<line class="grid" x1="${px(at)}" y1="${TOP - 6}" x2="${px(at)}" y2="${bottom}"/>`,
      label(at, bottom + 18, ms(share * lengthMs), ' text-anchor="middle"'),
    ];
  });
  const bars = rows.flatMap(({ span, depth }, row) => {
    const y = TOP + row * STEP;
    const width = Math.max(x(span.endMs) - x(span.startMs), 2);
    return [
      label(16 + depth * INDENT, y + 11, span.name),
      `<rect class="${kindOf(span.process)}" x="${px(x(span.startMs))}" y="${y}" width="${px(width)}" height="${BAR_HEIGHT}"/>`,
      label(x(span.startMs) + width + 5, y + 11, ms(span.endMs - span.startMs)),
    ];
  });
  const described = rows.map(
    ({ span }) =>
      `${span.name} (${span.process}) from ${ms(span.startMs - beganMs)} for ${ms(span.endMs - span.startMs)}`,
  );
  const parts = [label(16, 26, title, ' class="title"'), ...legend, ...grid, ...bars];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="title desc">
<title id="title">${escaped(title)}</title>
<desc id="desc">${escaped(`${described.join('; ')}.`)}</desc>
${STYLE}
${parts.join('\n')}
</svg>
`;
};
