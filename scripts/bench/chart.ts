/**
 * Charts as SVG. They are shown by `<img>`, so that nothing of the page's style reaches them: colours
 * are such that they can be read on white and on black, and change with the reader's scheme.
 */

/** Of every picture, in pixels. */
export const WIDTH = 720;
const STYLE = `<style>
  text { font: 13px system-ui, sans-serif; fill: #24292f; }
  .title { font-weight: 600; font-size: 15px; }
  .line { fill: none; stroke-width: 2.5; }
  .axis { stroke: #8c959f; stroke-width: 1; }
  .mark { stroke: #24292f; stroke-width: 2; stroke-dasharray: 4 3; }
  .grid { stroke: #8c959f; stroke-width: 1; stroke-opacity: 0.35; }
  .a { fill: #0969da; stroke: #0969da; } .b { fill: #bc4c00; stroke: #bc4c00; }
  .c { fill: #1a7f37; stroke: #1a7f37; } .bare { fill: #8c959f; stroke: #8c959f; }
  .line { fill: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .mark { stroke: #f6f8fa; }
    .a { fill: #58a6ff; stroke: #58a6ff; } .b { fill: #f0883e; stroke: #f0883e; }
    .c { fill: #56d364; stroke: #56d364; } .line { fill: none; }
  }
</style>`;

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** A number of pixels as it is written. */
export const px = (value: number): string => String(Math.round(value * 10) / 10);

/** A text at a place. */
export const label = (x: number, y: number, text: string, extra = ''): string =>
  `<text x="${px(x)}" y="${px(y)}"${extra}>${escaped(text)}</text>`;

/** A straight line; `kind` is a class of the style. */
export const line = (x1: number, y1: number, x2: number, y2: number, kind: string): string =>
  `<line class="${kind}" x1="${px(x1)}" y1="${px(y1)}" x2="${px(x2)}" y2="${px(y2)}"/>`;

/** The whole picture: a title, a description for who cannot see it, and its parts. */
export const svg = (height: number, title: string, description: string, parts: string[]): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="title desc">
<title id="title">${escaped(title)}</title>
<desc id="desc">${escaped(description)}</desc>
${STYLE}
${[label(16, 26, title, ' class="title"'), ...parts].join('\n')}
</svg>
`;

/** A bar, with an aim where it has one: a line that it should not cross. */
export type Bar = { name: string; value: number; kind: 'a' | 'b' | 'c' | 'bare'; aim?: number };

const BAR_LEFT = 250;
const BAR_RIGHT = 110;
const BAR_HEIGHT = 22;
const BAR_STEP = 32;
const TOP = 44;

/** Horizontal bars, one below the other, each with its value. */
export const barChart = (title: string, unit: string, bars: readonly Bar[]): string => {
  const largest = Math.max(...bars.map(({ value, aim = 0 }) => Math.max(value, aim)), 1e-9);
  const x = (value: number): number => (value / largest) * (WIDTH - BAR_LEFT - BAR_RIGHT);
  const text = (value: number): string =>
    `${Number(value.toPrecision(3)).toLocaleString('en-US')} ${unit}`;
  const parts = bars.flatMap(({ name, value, kind, aim }, at) => {
    const y = TOP + at * BAR_STEP;
    const width = px(Math.max(x(value), 1));
    const beside = Math.max(x(value), x(aim ?? 0)) + BAR_LEFT + 8;
    return [
      label(BAR_LEFT - 10, y + 16, name, ' text-anchor="end"'),
      `<rect class="${kind}" x="${BAR_LEFT}" y="${y}" width="${width}" height="${BAR_HEIGHT}"/>`,
      label(beside, y + 16, text(value)),
      ...(aim === undefined
        ? []
        : [line(BAR_LEFT + x(aim), y - 4, BAR_LEFT + x(aim), y + BAR_HEIGHT + 4, 'mark')]),
    ];
  });
  const hasAim = bars.some(({ aim }) => aim !== undefined);
  const height = TOP + bars.length * BAR_STEP + (hasAim ? 28 : 8);
  const note = hasAim ? [label(BAR_LEFT, height - 10, 'dashed: the aim')] : [];
  const description = bars.map(({ name, value, aim }) =>
    aim === undefined ? `${name} ${text(value)}` : `${name} ${text(value)}, aim ${text(aim)}`,
  );
  return svg(height, title, `${description.join('; ')}.`, [...parts, ...note]);
};

/** A curve over sizes: one point for each x, undefined where it was not measured. */
export type Curve = { name: string; kind: 'a' | 'b' | 'c' | 'bare'; values: readonly number[] };

const HEIGHT = 340;
const LEFT = 64;
const RIGHT = 170;
const BOTTOM = HEIGHT - 44;

/** Curves over sizes on a logarithmic axis; values begin at 0, so that flat looks flat. */
export const lineChart = (
  title: string,
  unit: string,
  sizes: readonly number[],
  curves: readonly Curve[],
): string => {
  const logs = sizes.map(Math.log10);
  const [from = 0] = logs;
  const span = Math.max((logs.at(-1) ?? 0) - from, 1e-9);
  const largest = Math.max(...curves.flatMap(({ values }) => values), 1e-9) * 1.1;
  const x = (at: number): number =>
    LEFT + (((logs[at] ?? 0) - from) / span) * (WIDTH - LEFT - RIGHT);
  const y = (value: number): number => BOTTOM - (value / largest) * (BOTTOM - TOP);
  const short = (value: number): string =>
    Number(value.toPrecision(3)).toLocaleString('en-US', { notation: 'compact' });
  const axes = [
    line(LEFT, BOTTOM, WIDTH - RIGHT, BOTTOM, 'axis'),
    ...[0, 0.25, 0.5, 0.75].flatMap((share) => [
      line(LEFT, y(share * largest), WIDTH - RIGHT, y(share * largest), 'grid'),
      label(LEFT - 8, y(share * largest) + 4, short(share * largest), ' text-anchor="end"'),
    ]),
    ...sizes.map((size, at) => label(x(at), BOTTOM + 20, short(size), ' text-anchor="middle"')),
    label(LEFT, HEIGHT - 6, `payments in the log; ${unit}`),
  ];
  // Names stand where their curves end, moved apart where those end close together.
  let lowest = Number.NEGATIVE_INFINITY;
  const names = new Map(
    curves
      .toSorted((a, b) => (b.values.at(-1) ?? 0) - (a.values.at(-1) ?? 0))
      .map(({ name, values }) => {
        lowest = Math.max(y(values.at(-1) ?? 0) + 4, lowest + 16);
        return [name, lowest];
      }),
  );
  const drawn = curves.flatMap(({ name, kind, values }) => [
    `<polyline class="${kind} line" points="${values.map((value, at) => `${px(x(at))},${px(y(value))}`).join(' ')}"/>`,
    ...values.map(
      (value, at) => `<circle class="${kind}" cx="${px(x(at))}" cy="${px(y(value))}" r="3.5"/>`,
    ),
    label(WIDTH - RIGHT + 12, names.get(name) ?? 0, name),
  ]);
  const description = curves.map(
    ({ name, values }) =>
      `${name}: ${values.map((value, at) => `${short(value)} at ${short(sizes[at] ?? 0)}`).join(', ')}`,
  );
  return svg(HEIGHT, title, `In ${unit}. ${description.join('; ')}.`, [...axes, ...drawn]);
};
