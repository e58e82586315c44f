/** The one plot: events each second, and how far the read models are behind. */
import { useEffect, useRef } from 'preact/hooks';
import UPlot from 'uplot';
import { html } from './parts.js';

const HEIGHT = 160;

/** @type {(element: HTMLElement, hasLag: boolean) => import('uplot').Options} */
const optionsOf = (element, hasLag) => {
  /** @param {string} name of the style sheet, as a colour that a canvas knows */
  const color = (name) => {
    element.style.color = `var(${name})`;
    return getComputedStyle(element).color;
  };
  /** @type {(plot: unknown, at: number[]) => string[]} */
  const seconds = (_plot, at) => at.map((second) => `${second} s`);
  const events = { label: 'events a second', stroke: color('--accent'), width: 2 };
  const behind = { label: 'events behind', stroke: color('--bad'), width: 2, dash: [6, 4] };
  const axis = { stroke: color('--soft'), grid: { stroke: color('--line') } };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    cursor: { show: false },
    legend: { show: true, live: false },
    scales: { x: { time: false } },
    axes: [{ ...axis, values: seconds }, axis],
    series: [{}, events, ...(hasLag ? [behind] : [])],
  };
};

/** @param {{ rate: readonly number[], lag?: readonly number[] | undefined }} props for each of the last seconds; no lag without the right to read it */
export const Plot = ({ rate, lag }) => {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const plot = useRef(/** @type {UPlot | undefined} */ (undefined));
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const made = new UPlot(optionsOf(element, lag !== undefined), [[], [], []], element);
    plot.current = made;
    const resized = () => made.setSize({ width: element.clientWidth, height: HEIGHT });
    addEventListener('resize', resized);
    return () => {
      removeEventListener('resize', resized);
      made.destroy();
    };
  }, []);
  useEffect(() => {
    const seconds = rate.map((_, at) => at + 1 - rate.length);
    plot.current?.setData([seconds, [...rate], ...(lag === undefined ? [] : [[...lag]])]);
  }, [rate, lag]);
  const events = `${rate.at(-1) ?? 0} events`;
  const behind = lag && `${lag.at(-1) ?? 0} events`;
  const words = `In the last second ${events}${behind === undefined ? '' : `; the read models are ${behind} behind`}.`;
  return html`<figure class="plot"><div ref=${box} role="img" aria-label=${words}></div>
    <figcaption>The last two minutes. In the last second <a href="#stored">${events}</a>${behind !== undefined && html`; the read models are <a href="/console/operate/rebuild">${behind}</a> behind`}.</figcaption></figure>`;
};
