// A URL, or what was meant to be one, as an error or a log line may show it.

const BEFORE_QUERY = /^[^?#]*/
const SCHEME = /^[A-Za-z][\w+.-]*:\/\//

/**
 * Without what may be secret in a URL: query, fragment, and everything behind the scheme where there may be a user or a
 * password. Where those end is certain only in a URL without mistakes, so an `@` anywhere hides all.
 */
export function shownUrl(text: string): string {
  const [scheme = ''] = SCHEME.exec(text) ?? []
  if (text.lastIndexOf('@') > 0) return `${scheme}…@…`
  if (scheme === '') return text
  const [shown = ''] = BEFORE_QUERY.exec(text) ?? []
  return shown === text ? text : `${shown}…`
}
