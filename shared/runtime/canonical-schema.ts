/** Schemas whose output JSON.stringify writes as canonical JSON (RFC 8785) asks for. */
import { z } from 'zod';

/**
 * The same schema with its fields in canonical order, which is the order that its output has. Where
 * it is not strict, a field added by a later version is left out instead of rejected.
 */
export const inCanonicalOrder = (schema: z.core.$ZodType, strict: boolean): z.core.$ZodType => {
  if (schema instanceof z.ZodOptional) return z.optional(inCanonicalOrder(schema.unwrap(), strict));
  if (schema instanceof z.ZodArray)
    return schema.clone({ ...schema.def, element: inCanonicalOrder(schema.element, strict) });
  if (!(schema instanceof z.ZodObject)) return schema;
  const names = Object.keys(schema.shape).sort();
  const shape = Object.fromEntries(
    names.map((name) => [name, inCanonicalOrder(schema.shape[name], strict)]),
  );
  return strict ? z.strictObject(shape) : z.object(shape);
};
