/** Apart from the schemas of seals: some threads know the stream by its name alone. */
export const SEALS_STREAM = 'log-seals';
