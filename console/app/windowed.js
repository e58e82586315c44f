/** A long list of which only the rows in sight are elements, so that a thousand rows scroll as ten do. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.js';

/** Rows beyond the edges of the window, above and below. */
const BESIDE = 8;

/**
 * All rows have one height; the one that is chosen is kept in sight.
 * @template T
 * @param {{
 *   rows: readonly T[],
 *   rowHeight: number,
 *   label: string,
 *   chosen?: number,
 *   onScrolled?: (isAtTop: boolean) => void,
 *   row: (value: T, at: number) => unknown,
 * }} props `rowHeight` in pixels
 */
export const Windowed = ({ rows, rowHeight, label, chosen, onScrolled, row }) => {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [seen, setSeen] = useState({ top: 0, height: 600 });

  const measure = () => {
    const { scrollTop: top = 0, clientHeight: height = 600 } = box.current ?? {};
    setSeen((before) =>
      before.top === top && before.height === height ? before : { top, height },
    );
  };
  useLayoutEffect(measure, [rows.length]);
  useEffect(() => {
    addEventListener('resize', measure);
    return () => removeEventListener('resize', measure);
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null || chosen === undefined) return;
    const top = chosen * rowHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + rowHeight > element.scrollTop + element.clientHeight) {
      element.scrollTop = top + rowHeight - element.clientHeight;
    }
  }, [chosen, rowHeight]);

  const first = Math.max(0, Math.floor(seen.top / rowHeight) - BESIDE);
  const last = Math.min(rows.length, Math.ceil((seen.top + seen.height) / rowHeight) + BESIDE);
  const scrolled = () => {
    measure();
    onScrolled?.((box.current?.scrollTop ?? 0) < rowHeight);
  };
  return html`<div class="windowed" ref=${box} onScroll=${scrolled} role="list" aria-label=${label} tabindex="0">
    <div class="whole" style=${{ height: `${rows.length * rowHeight}px` }}>
      ${rows.slice(first, last).map(
        (value, index) => html`<div
          key=${first + index}
          class="row"
          role="listitem"
          aria-setsize=${rows.length}
          aria-posinset=${first + index + 1}
          style=${{ top: `${(first + index) * rowHeight}px`, height: `${rowHeight}px` }}
        >${row(value, first + index)}</div>`,
      )}
    </div>
  </div>`;
};
