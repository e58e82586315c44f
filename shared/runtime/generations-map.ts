/**
 * A map of bounded size for what is remembered in passing, such as what a long scan has seen. Its entries
 * are in two generations, of which the older one is dropped whole: a map that forgets one entry for each
 * new one costs the garbage collector several times as much.
 */
export type GenerationsMap<V> = {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
};

/** Keeps at least the last `min` keys that were set, and at most twice as many. */
export const createGenerationsMap = <V>(min: number): GenerationsMap<V> => {
  let young = new Map<string, V>();
  let old = new Map<string, V>();
  return {
    get: (key) => young.get(key) ?? old.get(key),
    set: (key, value) => {
      if (young.size >= min && !young.has(key)) {
        old = young;
        young = new Map();
      }
      young.set(key, value);
    },
  };
};
