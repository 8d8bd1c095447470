// Reads `null` in an optional member of a client message as an absent member: some clients write all members.
import { isObject } from './is-object.ts'

type Fields = Readonly<Record<string, unknown>>

/** Optional params of the protocol. `null` in any other, such as a required one, stays an error. */
const OPTIONAL: ReadonlySet<string> = new Set([
  ...['_meta', 'arguments', 'context', 'cursor', 'inputResponses', 'reason', 'requestState', 'task'],
])
/** Params that have no member where `null` is a value. */
const DEEP: ReadonlySet<string> = new Set(['_meta', 'capabilities', 'clientInfo', 'context', 'notifications', 'task'])

/** The same object unless `drop` or `enter` found a null. */
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

/** The params of a client's message. */
export const paramsWithoutNulls = (params: Fields): Fields => prune(params, isOptional, isDeep)

/** An object of which every member is optional, or is checked afterwards. */
export const withoutNulls = (fields: Fields): Fields => prune(fields, always, never)
