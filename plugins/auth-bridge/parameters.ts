// Parameters as requests have them: each may be a text, several, or nothing.

/** The one text of a parameter; empty where it is none. */
export const asText = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Its texts, of one that may be there several times. */
export const asTexts = (value: unknown): string[] =>
  [value].flat().flatMap(one => (typeof one === 'string' && one !== '' ? [one] : []))
