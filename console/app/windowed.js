/** A long list of which only the rows in sight are elements, so that a thousand rows scroll as ten do. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { html } from './parts.js';

const BESIDE = 8;

/** The style sheet has the same width. */
const narrowPage = () => matchMedia('(max-width: 34rem)');

export const useNarrow = () => {
  const [isNarrow, setNarrow] = useState(() => narrowPage().matches);
  useEffect(() => {
    const narrow = narrowPage();
    const changed = () => setNarrow(narrow.matches);
    narrow.addEventListener('change', changed);
    return () => narrow.removeEventListener('change', changed);
  }, []);
  return isNarrow;
};

const STEPS = new Map([
  ['ArrowDown', 1],
  ['ArrowUp', -1],
  ['PageDown', 10],
  ['PageUp', -10],
  ['Home', Number.NEGATIVE_INFINITY],
  ['End', Number.POSITIVE_INFINITY],
]);

/**
 * All rows have one height; the one that is chosen is kept in sight. With `choose` the keys of a list
 * go through the rows, and the row that they choose has the focus.
 * @template T
 * @param {{
 *   rows: readonly T[],
 *   rowHeight: number,
 *   label: string,
 *   chosen?: number,
 *   choose?: (at: number) => void,
 *   onFocus?: () => void,
 *   onScrolled?: (isAtTop: boolean) => void,
 *   row: (value: T, at: number) => unknown,
 * }} props `rowHeight` in pixels
 */
export const Windowed = (props) => {
  const { rows, rowHeight, label, chosen, choose, onFocus, onScrolled, row } = props;
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

  /** The chosen row gets the focus once it is there: a row far away is made after the list has scrolled. */
  const wantsFocus = useRef(false);
  useLayoutEffect(() => {
    /** @type {HTMLElement | null | undefined} */
    const current = wantsFocus.current ? box.current?.querySelector('[aria-current]') : null;
    if (current == null) return;
    wantsFocus.current = false;
    current.focus({ preventScroll: true });
  });
  /** @param {KeyboardEvent} event */
  const move = (event) => {
    const step = STEPS.get(event.key);
    const isShortcut = event.altKey || event.ctrlKey || event.metaKey;
    if (choose === undefined || step === undefined || isShortcut) return;
    event.preventDefault();
    wantsFocus.current = true;
    choose(Math.max(0, Math.min(rows.length - 1, (chosen ?? 0) + step)));
  };

  const first = Math.max(0, Math.floor(seen.top / rowHeight) - BESIDE);
  const last = Math.min(rows.length, Math.ceil((seen.top + seen.height) / rowHeight) + BESIDE);
  const scrolled = () => {
    measure();
    const isInside = box.current?.contains(document.activeElement) === true;
    onScrolled?.((box.current?.scrollTop ?? 0) < rowHeight && !isInside);
  };
  if (rows.length === 0) return null;
  return html`<div class="windowed" ref=${box} onScroll=${scrolled} onKeyDown=${move} onFocusIn=${onFocus} role="list" aria-label=${label} tabindex="0">
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
