/** Draws one trace: a line for each span, by its start, below its parent. */
import { label, line, px, svg, WIDTH } from '../bench/chart.ts';

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

/** An SVG. Throws RangeError where there is no span. */
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
      line(at, TOP - 6, at, bottom, 'grid'),
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
  return svg(height, title, `${described.join('; ')}.`, [...legend, ...grid, ...bars]);
};
