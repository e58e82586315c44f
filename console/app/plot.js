/** The one plot: events each second, and how far the read models are behind. */
import { html } from './parts.js';

/** @type {(values: readonly number[], most: number, kind: string) => unknown} from left to right, in hundredths */
const line = (values, most, kind) => {
  const points = values.map(
    (value, at) => `${(at / (values.length - 1)) * 100},${100 - (value / most) * 100}`,
  );
  return html`<polyline class=${kind} points=${points.join(' ')} />`;
};

/** @param {{ rate: readonly number[], lag?: readonly number[] | undefined }} props for each of the last seconds; no lag without the right to read it */
export const Plot = ({ rate, lag }) => {
  const most = Math.max(1, ...rate, ...(lag ?? []));
  const events = `${rate.at(-1) ?? 0} events`;
  const behind = lag && `${lag.at(-1) ?? 0} events`;
  const words = `In the last second ${events}${behind === undefined ? '' : `; the read models are ${behind} behind`}.`;
  return html`<figure class="plot">
    <svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label=${words}>
      ${line(rate, most, 'rate')}${lag && line(lag, most, 'lag')}</svg>
    <figcaption>The last two minutes, the top line at <a href="#stored">${most}</a>. In the last second <a href="#stored">${events}</a>${behind !== undefined && html`; dashed, the read models are <a href="/console/operate/rebuild">${behind}</a> behind`}.</figcaption></figure>`;
};
