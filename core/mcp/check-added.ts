// What is wrong with what an author adds at set-up, in words: the parts of an extension, and methods. Its types say the same
// to those who have them checked.
import { isObject } from './is-object.ts'
import { nearest } from './nearest.ts'
import { TOOL_KEYS } from './tool-key-names.ts'

const PARTS = ['settings', 'methods', 'nameHeaders', 'results', 'listenFilters', 'clientMustDeclare', 'toolKeys']

/** Beyond it a value is taken for one that holds itself. */
const MAX_DEPTH = 100

const found = (value: unknown): string => {
  if (Array.isArray(value)) return 'found a list'
  return value === undefined || value === null ? `found ${value}` : `found a ${typeof value}`
}

/** What is undefined is left out of JSON. */
function isJson(value: unknown, depth = 0): boolean {
  if (value === null || value === undefined || typeof value === 'string' || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || depth > MAX_DEPTH) return false
  if (!Array.isArray(value) && Object.prototype.toString.call(value) !== '[object Object]') return false
  return Object.values(value).every(entry => isJson(entry, depth + 1))
}

/** Throws where a method's result, or what `around` made of it, is none. */
export function demandObject(method: string, result: unknown): asserts result is object {
  if (typeof result === 'object' && result !== null) return
  const what = result === undefined || result === null ? String(result) : `a ${typeof result}`
  throw new TypeError(`the result of ${method} must be an object; found ${what}`)
}

/** Undefined: nothing is wrong. */
export function methodNameFault(name: unknown): string | undefined {
  if (typeof name !== 'string' || name === '')
    return `the method ${JSON.stringify(name)} has no name: give one such as "jobs/get"`
  if (name.startsWith('notifications/')) {
    return `the method "${name}" is a notification, which nobody answers: give it another name`
  }
  return undefined
}

function methodFault(name: string, answer: unknown): string | undefined {
  if (typeof answer === 'function') return methodNameFault(name)
  return `the method "${name}" takes a function, call => result; ${found(answer)}`
}

function recordFault(part: string, value: unknown, faultOf: (name: string, value: unknown) => string | undefined) {
  if (value === undefined) return undefined
  if (!isObject(value)) return `\`${part}\` takes an object; ${found(value)}`
  for (const [name, entry] of Object.entries(value)) {
    const fault = faultOf(name, entry)
    if (fault !== undefined) return fault
  }
  return undefined
}

const KEY_PARTS = ['meta', 'resources', 'around', 'digest']

function toolKeyFault(name: string, key: unknown): string | undefined {
  if (!(TOOL_KEYS as readonly string[]).includes(name)) {
    return `no tool has a key "${name}"; there are: ${TOOL_KEYS.join(', ')}`
  }
  if (!isObject(key)) return `the key "${name}" takes an object; ${found(key)}`
  const stray = Object.keys(key).find(part => !KEY_PARTS.includes(part))
  if (stray !== undefined) return `the key "${name}" has an unknown part "${stray}"; there are: ${KEY_PARTS.join(', ')}`
  return recordFault(name, key, (part, act) =>
    act === undefined || typeof act === 'function'
      ? undefined
      : `\`${part}\` of the key "${name}" takes a function; ${found(act)}`,
  )
}

function settingsFault(settings: unknown): string | undefined {
  if (settings === undefined) return undefined
  if (!isObject(settings)) return `\`settings\` takes a JSON object; ${found(settings)}`
  return isJson(settings) ? undefined : '`settings` holds what JSON cannot: take out functions, dates and bigints'
}

/** Undefined: the parts of this extension are what they should be. */
export function partsFault(extension: unknown): string | undefined {
  if (!isObject(extension)) return `it takes an object of its parts, {} where it adds none; ${found(extension)}`
  const stray = Object.keys(extension).find(name => !PARTS.includes(name))
  if (stray !== undefined) {
    const meant = nearest(stray, PARTS)
    const hint = meant === undefined ? `there are: ${PARTS.join(', ')}` : `did you mean "${meant}"?`
    return `unknown part "${stray}"; ${hint}`
  }
  const { settings, methods, nameHeaders, results, listenFilters, toolKeys } = extension
  return (
    settingsFault(settings) ??
    recordFault('methods', methods, methodFault) ??
    recordFault('nameHeaders', nameHeaders, (method, parameter) =>
      typeof parameter === 'string'
        ? undefined
        : `\`nameHeaders\` of "${method}" takes a parameter's name; ${found(parameter)}`,
    ) ??
    recordFault('results', results, (method, types) =>
      Array.isArray(types) && types.every(type => typeof type === 'string' && type !== '')
        ? undefined
        : `\`results\` of "${method}" takes a list of names; ${found(types)}`,
    ) ??
    recordFault('listenFilters', listenFilters, (name, filter) =>
      typeof filter === 'function' ? undefined : `the filter "${name}" takes a function; ${found(filter)}`,
    ) ??
    recordFault('toolKeys', toolKeys, toolKeyFault)
  )
}
