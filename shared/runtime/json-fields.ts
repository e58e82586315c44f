/** None when the text is no JSON object. */
export const jsonFieldsOf = (text: string): Record<string, unknown> => {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
};
