// The answer where nothing is served, with what there is instead, as far as its reader may know.
import { HostError } from './errors.ts'

/** `hint`: what is served elsewhere, as far as anybody may know. */
export const refuseAddress = (hint = ''): never => {
  throw new HostError('notFound', { detail: `nothing is served at this path${hint}` })
}

/** What of an address says whether anybody may know it. */
interface Known {
  readonly kind: string
  readonly route?: { readonly path: string; readonly authorize: unknown } | undefined
}

/** The paths of routes that let anybody in. */
export const openPaths = (served: readonly Known[]): string[] => [
  ...new Set(
    served.flatMap(({ kind, route }) => (kind === 'R' && route && route.authorize === undefined ? route.path : [])),
  ),
]

/** Names in a refusal, and characters of all of them. */
const MAX_HINTS = 20
const MAX_HINT = 500

/** What there is instead, for a refusal; nothing where nobody may know of any. */
export function hintAt(where: string, names: readonly string[]): string {
  const shown = names.slice(0, MAX_HINTS).join(', ').slice(0, MAX_HINT)
  return names.length === 0 ? '' : `; ${where}: ${shown}${names.length > MAX_HINTS ? ', …' : ''}`
}
