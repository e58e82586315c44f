/** The fields of the object in a JSON text; none when the text is not JSON, or not an object. */
export const jsonFieldsOf = (text: string): Record<string, unknown> => {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
};
