/** Drops the older of two generations at once: evicting one by one costs several times the GC. */
type GenerationsMap<V> = {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
};

/** Keeps at least the last `min` keys, at most twice as many. */
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
