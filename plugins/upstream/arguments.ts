// Applies argument overrides to input schemas and arguments.
import { isObject } from '../../core/plugin.ts'
import type { ArgumentOverride } from './options.ts'

type Overrides = Readonly<Record<string, ArgumentOverride>>
type Schema = Readonly<Record<string, unknown>>

const isFixed = (override: ArgumentOverride | undefined) => override !== undefined && 'value' in override

/** Returns the input schema that callers see. */
export function overrideInputSchema(schema: Schema, overrides: Overrides | undefined): Schema {
  if (!overrides || !isObject(schema['properties'])) return schema
  const own = (name: string) => (Object.hasOwn(overrides, name) ? overrides[name] : undefined)
  const properties = Object.entries(schema['properties']).flatMap(([name, property]) => {
    const override = own(name)
    if (!override || isFixed(override)) return override ? [] : [[name, property] as const]
    const { description, name: shown = name } = override
    const changed = {
      ...(isObject(property) && property),
      ...(description !== undefined && { description }),
      ...('default' in override && { default: override.default }),
    }
    return [[shown, changed] as const]
  })
  const { required, ...rest } = schema
  const needed = Array.isArray(required)
    ? (required as unknown[]).flatMap(name => {
        const override = typeof name === 'string' ? own(name) : undefined
        if (isFixed(override) || (override && 'default' in override)) return []
        return [override?.name ?? name]
      })
    : []
  return { ...rest, properties: Object.fromEntries(properties), ...(needed.length > 0 && { required: needed }) }
}

/** Returns the arguments for the server. Callers cannot set fixed arguments, not even under their original names. */
export function overrideArguments(args: Schema, overrides: Overrides | undefined): Schema {
  if (!overrides) return args
  const sent: Record<string, unknown> = { ...args }
  for (const [name, { name: shown = name }] of Object.entries(overrides)) if (shown !== name) delete sent[name]
  for (const [name, override] of Object.entries(overrides)) {
    const { name: shown = name } = override
    if (isFixed(override)) {
      sent[name] = override.value
      continue
    }
    const given = Object.hasOwn(args, shown)
    if (shown !== name) delete sent[shown]
    if (given) sent[name] = args[shown]
    else if ('default' in override) sent[name] = override.default
  }
  return sent
}
