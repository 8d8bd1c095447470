// State in the query of the URL, so that each view has a stable URL.
import { useLocation, useSearch } from 'wouter-preact'

/** Such as `/calls?outcome=refused`. Undefined and empty values are left out. */
export function urlOf(path: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== '') search.set(name, value)
  return search.size === 0 ? path : `${path}?${search}`
}

type Change = (changes: Readonly<Record<string, string | undefined>>) => void

/** The parameters of the query, and a function that changes some of them. A change replaces the entry of the history. */
export function useQuery(): readonly [URLSearchParams, Change] {
  const [path, navigate] = useLocation()
  const query = new URLSearchParams(useSearch())
  const change: Change = changes => {
    // The `close` event of a dialog can follow the navigation to another screen.
    if (location.pathname !== path) return
    navigate(urlOf(path, { ...Object.fromEntries(query), ...changes }), { replace: true })
  }
  return [query, change]
}
