// Names of tools and arguments that all clients accept.
import { HASH_LENGTH, hashOf, MAX_NAME, trimEndOf } from '../families/texts/index.ts'
import type { Candidate } from './api.ts'

const shortenName = (name: string, whole: string): string =>
  name.length <= MAX_NAME ? name : `${trimEndOf(name.slice(0, MAX_NAME - HASH_LENGTH - 1), '_')}_${hashOf(whole)}`

const sanitize = (text: string): string => trimEndOf(text.replaceAll(/[^A-Za-z0-9_-]+/g, '_').replace(/^_+/, ''), '_')

/** Derives a name: `get_pets_by_id` for `GET /pets/{id}`. */
const pathName = ({ method, path }: Candidate): string =>
  `${method}_${sanitize(path.replaceAll(/\{([^{}]*)\}/g, 'by_$1')) || 'root'}`

/** Returns the names of tools by candidate. A tool name does not depend on the selection of other tools. */
export function createNames(candidates: readonly Candidate[], prefix: string): (candidate: Candidate) => string {
  const plain = (candidate: Candidate) => sanitize(candidate.operationId ?? '') || pathName(candidate)
  const owners = new Map<string, Candidate[]>()
  for (const candidate of candidates) {
    const name = plain(candidate)
    owners.set(name, [...(owners.get(name) ?? []), candidate])
  }
  return candidate => {
    const name = plain(candidate)
    const twins = owners.get(name) ?? []
    // The operation whose operationId is exactly the name keeps it.
    const owner = twins.find(({ operationId }) => operationId === name) ?? (twins.length === 1 ? twins[0] : undefined)
    const whole = `${candidate.method} ${candidate.path}`
    const unique = owner === candidate ? name : `${name}_${hashOf(whole)}`
    return shortenName(`${prefix}${unique}`, `${prefix}${name} ${whole}`)
  }
}

/** Derives a property name that model vendors accept: `filter_name_` for `filter[name]`. */
export function toArgumentName(name: string): string {
  const plain = name.replaceAll(/[^A-Za-z0-9_.-]/g, '_')
  return shortenName(plain === '' ? '_' : plain, name)
}

/** Returns `wanted`, with a suffix and number if it is in use. */
export function freeName(wanted: string, suffix: string, taken: ReadonlySet<string>): string {
  if (!taken.has(wanted)) return wanted
  const suffixed = shortenName(`${wanted}_${suffix}`, `${wanted} ${suffix}`)
  for (let count = 1; ; count++) {
    const name = count === 1 ? suffixed : `${suffixed}_${count}`
    if (!taken.has(name)) return name
  }
}
