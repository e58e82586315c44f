/** Goes through all read models page by page. Each throws ReadModelsUnavailable. */
import type { ParkedPayment, ReadModelsReader } from './port.ts';

export async function* documentPages(
  { idsAfter }: Pick<ReadModelsReader, 'idsAfter'>,
  size: number,
): AsyncGenerator<string[]> {
  let ids: string[] | undefined;
  do {
    ids = await idsAfter(ids?.at(-1) ?? null, size);
    yield ids;
  } while (ids.length === size);
}

export async function* parkedPayments(
  { parked }: Pick<ReadModelsReader, 'parked'>,
  size: number,
): AsyncGenerator<ParkedPayment> {
  let page = await parked(size);
  while (page.length > 0) {
    yield* page;
    page = await parked(size, page.at(-1));
  }
}
