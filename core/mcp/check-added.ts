// Checks methods and extension parts that plugins add at set-up, for authors without type checks.
import { isObject } from './is-object.ts'
import { didYouMean } from './nearest.ts'

export const noObject = (method: string, result: unknown): TypeError =>
  new TypeError(`the result of ${method} must be an object; ${found(result)}`)

const found = (value: unknown): string => {
  if (Array.isArray(value)) return 'found a list'
  return value === undefined || value === null ? `found ${value}` : `found a ${typeof value}`
}

export function methodNameFault(name: unknown): string | undefined {
  if (typeof name !== 'string' || name === '')
    return `the method ${JSON.stringify(name)} has no name: use a name such as "jobs/get"`
  if (!name.startsWith('notifications/')) return undefined
  return `the method "${name}" is a notification, which has no response: use another name`
}

type FaultOf = (name: string, value: unknown) => string | undefined

const takes =
  (what: string, isValid: (value: unknown) => boolean): FaultOf =>
  (name, value) =>
    isValid(value) ? undefined : `${name} takes ${what}; ${found(value)}`

const isFunction = (value: unknown) => typeof value === 'function'
const isNames = (value: unknown) => Array.isArray(value) && value.every(type => typeof type === 'string' && type !== '')

const MAX_DEPTH = 100

function isJson(value: unknown, depth = 0): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (value === null || ['undefined', 'string', 'boolean'].includes(typeof value)) return true
  if (typeof value !== 'object' || depth > MAX_DEPTH || value instanceof Date) return false
  return Object.values(value).every(entry => isJson(entry, depth + 1))
}

function partsOf(name: string, value: unknown, parts: Readonly<Record<string, FaultOf>>): string | undefined {
  if (!isObject(value)) return `${name} takes an object; ${found(value)}`
  for (const [part, entry] of Object.entries(value)) {
    const faultOf = parts[part]
    if (!faultOf) return `${name} has an unknown part "${part}"; ${didYouMean(part, Object.keys(parts))}`
    const fault = entry === undefined ? undefined : faultOf(part, entry)
    if (fault !== undefined) return fault
  }
  return undefined
}

const each =
  (faultOf: FaultOf): FaultOf =>
  (part, value) =>
    isObject(value)
      ? Object.entries(value)
          .map(([name, entry]) => faultOf(name, entry))
          .find(fault => fault !== undefined)
      : `\`${part}\` takes an object; ${found(value)}`

export function keyPartsFault(name: string, key: unknown): string | undefined {
  const parts = ['onCall', 'meta', 'resources', 'digest', 'check'].map(part => {
    const faultOf: FaultOf = (_, value) =>
      takes('a function', isFunction)(`\`${part}\` of the tool key "${name}"`, value)
    return [part, faultOf] as const
  })
  return partsOf(`the tool key "${name}"`, key, Object.fromEntries(parts))
}

const PARTS: Readonly<Record<string, FaultOf>> = {
  settings: (_, value) => {
    if (!isObject(value)) return `\`settings\` takes a JSON object; ${found(value)}`
    return isJson(value) ? undefined : '`settings` must be JSON: remove functions, dates and bigints'
  },
  methods: each(
    (name, answer) =>
      takes('a function, call => result', isFunction)(`the method "${name}"`, answer) ?? methodNameFault(name),
  ),
  nameHeaders: each((name, value) =>
    takes("a parameter's name", parameter => typeof parameter === 'string')(`\`nameHeaders\` of "${name}"`, value),
  ),
  results: each((name, value) => takes('a list of names', isNames)(`\`results\` of "${name}"`, value)),
  listenFilters: each((name, value) => takes('a function', isFunction)(`the filter "${name}"`, value)),
  clientMustDeclare: () => undefined,
}

export const partsFault = (extension: unknown): string | undefined =>
  isObject(extension) ? partsOf('it', extension, PARTS) : `it must be an object of parts, or {}; ${found(extension)}`
