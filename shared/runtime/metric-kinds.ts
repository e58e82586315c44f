/**
 * Counters and histograms that keep plain numbers and get their label objects at a scrape: a label
 * object for each request costs more than the rest of the measurement.
 */
import type { Counter, Histogram, Registry } from 'prom-client';

/** Counts by label values, given in the order of the label names. */
type CounterOf<L extends string[]> = { add(count: number, ...labels: L): void };
/** Measures by label values, given in the order of the label names. */
type HistogramOf<L extends string[]> = { observe(value: number, ...labels: L): void };

type Shape = { name: string; help: string; labelNames?: readonly string[] };
type Sample = { value: number; labels: Record<string, string | number>; metricName?: string };

const SEPARATOR = '\u0000';

const labelsOf = (names: readonly string[], key: string): Record<string, string> => {
  const values = key.split(SEPARATOR);
  return Object.fromEntries(names.map((name, at) => [name, values[at] ?? '']));
};

/** The registry uses nothing of a metric but `name` and `get`. */
const register = <M>(registry: Registry, shape: Shape, type: string, values: () => Sample[]) => {
  const { name, help } = shape;
  const get = async () => ({ name, help, type, aggregator: 'sum', values: values() });
  registry.registerMetric({ name, get, reset: () => undefined } as unknown as M & Counter);
};

/** A counter of a registry; without labels it begins at 0. */
export const counter = <L extends string[]>(registry: Registry, shape: Shape): CounterOf<L> => {
  const names = shape.labelNames ?? [];
  const counts = new Map<string, number>(names.length === 0 ? [['', 0]] : []);
  register<Counter>(registry, shape, 'counter', () =>
    [...counts].map(([key, value]) => ({ value, labels: labelsOf(names, key) })),
  );
  return {
    add: (count, ...labels) => {
      const key = labels.join(SEPARATOR);
      counts.set(key, (counts.get(key) ?? 0) + count);
    },
  };
};

type Measured = { buckets: number[]; sum: number; count: number };

const samplesOf = (
  name: string,
  bounds: readonly number[],
  labels: Record<string, string>,
  { buckets, sum, count }: Measured,
): Sample[] => {
  let below = 0;
  const samples: Sample[] = bounds.map((le, at) => {
    below += buckets[at] ?? 0;
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: below };
  });
  samples.push(
    { metricName: `${name}_bucket`, labels: { ...labels, le: '+Inf' }, value: count },
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  );
  return samples;
};

/** A histogram of a registry over the upper bounds of its buckets. */
export const histogram = <L extends string[]>(
  registry: Registry,
  shape: Shape,
  bounds: readonly number[],
): HistogramOf<L> => {
  const names = shape.labelNames ?? [];
  const series = new Map<string, Measured>();
  const start = (key: string): Measured => {
    const fresh = { buckets: bounds.map(() => 0), sum: 0, count: 0 };
    series.set(key, fresh);
    return fresh;
  };
  if (names.length === 0) start('');
  register<Histogram>(registry, shape, 'histogram', () =>
    [...series].flatMap(([key, measured]) =>
      samplesOf(shape.name, bounds, labelsOf(names, key), measured),
    ),
  );
  return {
    observe: (value, ...labels) => {
      const key = labels.join(SEPARATOR);
      const measured = series.get(key) ?? start(key);
      const at = bounds.findIndex((bound) => value <= bound);
      if (at !== -1) measured.buckets[at] = (measured.buckets[at] ?? 0) + 1;
      measured.sum += value;
      measured.count += 1;
    },
  };
};
