// Selects the operations that become tools.
import { matchesGlob } from '../../core/auth.ts'
import { didYouMean } from '../../core/internal.ts'
import { type Candidate, defaultId } from './api.ts'
import type { Override, Source } from './options.ts'

type Filter = NonNullable<Source['include']>[number]

/** Returns the names of an operation in filters and `overrides`. */
export const candidateNames = (candidate: Candidate) => [candidate.id, defaultId(candidate)]

function matches(filter: Filter, candidate: Candidate): boolean {
  if (typeof filter === 'string') return candidateNames(candidate).some(name => matchesGlob(filter, name))
  const { tag, path, method, operation, deprecated } = filter
  if (tag !== undefined && !candidate.tags.some(one => matchesGlob(tag, one))) return false
  if (path !== undefined && !matchesGlob(path, candidate.path)) return false
  if (method !== undefined && method !== candidate.method) return false
  if (operation !== undefined && !candidateNames(candidate).some(name => matchesGlob(operation, name))) return false
  return deprecated === undefined || deprecated === candidate.deprecated
}

/** Returns why an operation is not selected; undefined if it is selected. */
export function skipReason(candidate: Candidate, { methods, include, exclude = [] }: Source): string | undefined {
  if (!methods.includes(candidate.method)) return `\`methods\` does not have "${candidate.method}"`
  if (include && !include.some(filter => matches(filter, candidate))) return '`include` does not match'
  const index = exclude.findIndex(filter => matches(filter, candidate))
  return index === -1 ? undefined : `\`exclude[${index}]\` matches`
}

const filtersIn = (value: boolean | readonly Filter[] = []): readonly Filter[] =>
  typeof value === 'boolean' ? [] : value

export const isResource = (candidate: Candidate, { resources }: Source): boolean =>
  candidate.method === 'get' && (resources === true || filtersIn(resources).some(filter => matches(filter, candidate)))

/** Returns entries of the filters that match no operation. `at`: relative to the options of the document. */
export const unmatchedFilters = (candidates: readonly Candidate[], source: Source) =>
  (['include', 'exclude', 'resources'] as const).flatMap(list => {
    if (list === 'include' && source.include?.length === 0)
      return { at: [list], text: '`include` is empty and matches no operation; remove it to include all operations' }
    return filtersIn(source[list]).flatMap((filter, index) => {
      if (candidates.some(candidate => matches(filter, candidate))) return []
      const name = typeof filter === 'string' ? filter : filter.operation
      const hint = name === undefined ? '' : `; ${didYouMean(name, candidates.flatMap(candidateNames))}`
      return { at: [list, index], text: `\`${list}[${index}]\` matches no operation${hint}` }
    })
  })

/** True if an override limits what callers can do with its operation. */
export const isRestricting = ({ access, arguments: args = {} }: Override = {}): boolean =>
  access !== undefined || Object.values(args).some(one => 'value' in one)

/** Returns the key of an operation in `overrides`: its operationId, or its method and path. With both, one that restricts it. */
export function findOverrideKey(candidate: Candidate, { overrides = {} }: Source): string | undefined {
  const keys = candidateNames(candidate).filter(name => Object.hasOwn(overrides, name))
  return keys.find(key => isRestricting(overrides[key])) ?? keys[0]
}

/** Returns keys of `overrides` that match no operation. */
export function unknownOverrides(candidates: readonly Candidate[], { overrides = {} }: Source): string[] {
  const known = new Set(candidates.flatMap(candidateNames))
  return Object.keys(overrides).filter(key => !known.has(key))
}
