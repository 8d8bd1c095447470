// The error for two items with one name on a route, with both places.
import { formatPath, type Path, StartError, type Written } from '../http/errors.ts'
import type { CatalogItem } from './catalog-item.ts'

/** A toolset of a plugin. */
export interface ProvidedSource {
  readonly toolset: string
  /** Its config keys. */
  readonly at: Path
  /** How to avoid duplicate names, such as a prefix. */
  readonly fix?: string | undefined
  /** Its definitions are known only after startup. */
  readonly isLate: boolean
  /** Its state, in one line. */
  readonly describe?: (() => string) | undefined
}

export interface Clashing {
  /** In words. */
  readonly where: string
  readonly item: CatalogItem
  readonly source?: ProvidedSource | undefined
}

const writtenAt = ({ item, source }: Clashing): Written =>
  source ? { at: source.at } : { of: item.definition, at: ['name'] }

const describe = ({ where, source }: Clashing) => (source ? `${where} (${formatPath(source.at)})` : where)

export function nameClash(first: Clashing, second: Clashing): StartError {
  const { kind, key } = second.item
  const fix = second.source?.fix ?? first.source?.fix
  const what = `two ${kind} are called "${key}": in ${describe(first)} and in ${describe(second)}`
  return new StartError('MH1107', fix === undefined ? what : `${what}; ${fix}`, {
    ...writtenAt(second),
    also: [writtenAt(first)],
  })
}
