// The config schema for editors (`mcp-host schema`), without values that only code can hold. Schemas with a `title` become
// `$defs`.
import type { JsonSchema } from '../mcp/wire/protocol.ts'
import { buildConfigSchema } from './config-schema.ts'
import type { Declaring } from './declared-keys.ts'
import { isSchema } from './walk-schema.ts'

const LINK = { type: 'string', description: 'Location of the JSON Schema, for editors. The host ignores this key.' }

export function writtenSchema(plugins: Readonly<Record<string, Declaring>>): JsonSchema {
  const { $defs, properties, title: _, ...rest } = buildConfigSchema(plugins)
  const shared = new Map<string, unknown>()
  const keys = write({ $schema: LINK, ...(properties as object) }, shared)
  const options = Object.entries(($defs ?? {}) as Record<string, JsonSchema>).map(
    ([name, { title: _, ...definition }]) => {
      return [name, write(definition, shared)]
    },
  )
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'mcp-host config',
    ...rest,
    properties: keys,
    $defs: Object.fromEntries([...options, ...shared]),
  }
}

const VALUES: ReadonlySet<string> = new Set(['default', 'examples', 'const', 'enum', 'required'])

const isCallable = (value: unknown) => isSchema(value) && value['callable'] === true

function write(node: unknown, shared: Map<string, unknown>): unknown {
  if (Array.isArray(node)) return node.filter(item => !isCallable(item)).map(item => write(item, shared))
  if (!isSchema(node)) return node
  const title = typeof node['title'] === 'string' ? node['title'] : undefined
  const entries = Object.entries(node).flatMap(([key, value]) => {
    const isOurs = isCallable(value) || key === 'tsType' || (key === 'title' && title)
    return isOurs ? [] : [[key, VALUES.has(key) ? value : write(value, shared)] as const]
  })
  const written = Object.fromEntries(entries)
  if (title === undefined) return written
  // The same shape can have different defaults.
  const { default: standard, ...definition } = written
  const known = shared.get(title) ?? definition
  if (JSON.stringify(known) !== JSON.stringify(definition)) throw new Error(`two schemas have the title ${title}`)
  shared.set(title, known)
  return { $ref: `#/$defs/${title}`, ...(standard !== undefined && { default: standard }) }
}
