/** The fields of the object that a JSON text holds; none where it is not JSON, or no object. */
export const jsonFieldsOf = (text: string): Record<string, unknown> => {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
};
