// What goes into a log line is bounded: the fields are cut here, before they are written.

/** Characters of one text in a line. */
const MAX_TEXT = 1_000

/** What a client chose may be in any field, and of any size. */
const cutText = (_key: string, value: unknown) =>
  typeof value === 'string' && value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}…` : value

/** The fields of a line, none of them too long. */
export function cutFields(fields: Record<string, unknown>): Record<string, unknown> {
  const cut: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) {
    if (name === 'err') cut[name] = value
    else if (typeof value === 'object' && value !== null) cut[name] = cutObject(value)
    else cut[name] = cutText(name, value)
  }
  return cut
}

function cutObject(value: object): unknown {
  try {
    const json = JSON.stringify(value, cutText)
    return json === undefined || json.length <= 4 * MAX_TEXT ? value : `${json.slice(0, MAX_TEXT)}…`
  } catch {
    return 'a value that cannot be written as JSON'
  }
}
