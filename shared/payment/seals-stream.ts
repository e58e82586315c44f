/** The stream of the seals of a log; apart from their schemas, for the threads that know it by name alone. */
export const SEALS_STREAM = 'log-seals';
