// Screen 12: the config without secrets, functions and code.
import { redactUrl } from '../../core/auth.ts'
import { isConfiguredPlugin, type Operator } from '../../core/internal.ts'

const MASK = '***'
const MAX_DEPTH = 10

function maskValue(value: unknown, path: readonly (string | number)[], operator: Operator): unknown {
  // A fixed value or default of an argument can be a secret.
  if (path.at(-3) === 'arguments' && (path.at(-1) === 'value' || path.at(-1) === 'default')) return MASK
  if (typeof value === 'function') return '[function]'
  if (typeof value === 'string') return operator.isSecret(path) ? MASK : redactUrl(value)
  if (typeof value === 'number') return operator.isSecret(path) ? MASK : value
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'object' || value === null) return value
  if (path.length > MAX_DEPTH) return '[…]'
  // Schemas describe only the options.
  if (isConfiguredPlugin(value)) return maskValue(value.options, path, operator)
  // Arguments of commands can be secrets.
  if (path.at(-1) === 'command' && Array.isArray(value)) return [value[0], ...value.slice(1).map(() => MASK)]
  if (Array.isArray(value)) return value.map((item, index) => maskValue(item, [...path, index], operator))
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== null && prototype !== Object.prototype) return '[object]'
  const shown = (key: string, item: unknown) =>
    key === 'args' && 'command' in value && Array.isArray(item)
      ? item.map(() => MASK)
      : maskValue(item, [...path, key], operator)
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shown(key, item)]))
}

export const maskConfig = (operator: Operator) => maskValue(operator.config, [], operator) as Record<string, unknown>
