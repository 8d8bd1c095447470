// Treats `null` in optional members of client messages as absent, because some clients write all members.
import { isObject } from './is-object.ts'

type Fields = Readonly<Record<string, unknown>>

/** Optional params. `null` in a required one stays an error. */
const OPTIONAL: ReadonlySet<string> = new Set([
  ...['_meta', 'arguments', 'context', 'cursor', 'inputResponses', 'reason', 'requestState', 'task'],
])
/** Params without members where `null` is a value. */
const DEEP: ReadonlySet<string> = new Set(['_meta', 'capabilities', 'clientInfo', 'context', 'notifications', 'task'])

function prune(fields: Fields, drop: (name: string) => boolean, enter: (name: string) => boolean): Fields {
  let copy: Record<string, unknown> | undefined
  for (const name in fields) {
    const value = fields[name]
    const pruned = isObject(value) && enter(name) ? prune(value, always, always) : value
    if (value === null ? !drop(name) : pruned === value) continue
    copy ??= { ...fields }
    if (value === null) delete copy[name]
    else copy[name] = pruned
  }
  return copy ?? fields
}

const always = () => true
const never = () => false
const isOptional = (name: string) => OPTIONAL.has(name)
const isDeep = (name: string) => DEEP.has(name)

export const paramsWithoutNulls = (params: Fields): Fields => prune(params, isOptional, isDeep)

export const withoutNulls = (fields: Fields): Fields => prune(fields, always, never)
