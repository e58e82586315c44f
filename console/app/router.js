/** Which page an address shows. Every page has its own address, which can be sent to a colleague. */
import { useEffect, useState } from 'preact/hooks';

const ROOT = '/console';

/**
 * `arrivals` counts the times that a link, or a step back, led the reader to another place.
 * @typedef {{ page: string, id: string | undefined, query: URLSearchParams, arrivals: number }} Place
 */

let arrivals = 0;

/** @type {(address: { pathname: string, search: string }) => Place} `/console/payments/<id>` is the page `payments` */
export const placeOf = ({ pathname, search }) => {
  const [page = '', id] = pathname.slice(ROOT.length).split('/').filter(Boolean);
  const query = new URLSearchParams(search);
  return { page, id: id && decodeURIComponent(id), query, arrivals };
};

/** @type {(address: string, isSame?: boolean) => void} `isSame`: another address of the page that is shown */
export const goTo = (address, isSame = false) => {
  if (isSame) history.replaceState(null, '', address);
  else history.pushState(null, '', address);
  dispatchEvent(new Event('place'));
};

/** @param {MouseEvent} event */
const followLink = (event) => {
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey;
  if (link === null || !isPlain || link.hash !== '' || link.hasAttribute('download')) return;
  if (link.origin !== location.origin || !link.pathname.startsWith(ROOT)) return;
  event.preventDefault();
  if (link.pathname !== location.pathname) scrollTo(0, 0);
  arrivals += 1;
  goTo(link.pathname + link.search);
};

export const usePlace = () => {
  const [place, setPlace] = useState(() => placeOf(location));
  useEffect(() => {
    const update = () => setPlace(placeOf(location));
    const back = () => {
      arrivals += 1;
      update();
    };
    addEventListener('place', update);
    // A page may have gone on to another address before anything listened.
    update();
    addEventListener('popstate', back);
    document.addEventListener('click', followLink);
    return () => {
      removeEventListener('place', update);
      removeEventListener('popstate', back);
      document.removeEventListener('click', followLink);
    };
  }, []);
  return place;
};
