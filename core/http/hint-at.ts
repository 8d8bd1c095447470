// What there is in the place of what was asked for: for refusals whose reader may know it.

/** Names in a refusal, and characters of all of them. */
const MAX_HINTS = 20
const MAX_HINT = 500

/** What there is instead, for a refusal; nothing where nobody may know of any. */
export function hintAt(where: string, names: readonly string[]): string {
  const shown = names.slice(0, MAX_HINTS).join(', ').slice(0, MAX_HINT)
  return names.length === 0 ? '' : `; ${where}: ${shown}${names.length > MAX_HINTS ? ', …' : ''}`
}
