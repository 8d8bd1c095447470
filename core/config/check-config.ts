// Validates a loaded config against its schema and says everything that is wrong, at once, with lines.
// Between load-config.ts and the rest of the start; plugins' own options are checked by `checkValue` too.
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import { kindOf } from '../define.ts'
import { type ConfiguredPlugin, isConfiguredPlugin } from '../define-plugin.ts'
import { errorText, StartError } from '../errors.ts'
import type { JsonSchema } from '../protocol.ts'
import { explainProblems } from './explain-problems.ts'
import { withoutRequired } from './host-schema.ts'
import type { LoadedConfig } from './load-config.ts'
import { formatPath, type Path } from './position.ts'
import type { Problem } from './problems.ts'

export { assertNoProblems, formatProblems, type Problem } from './problems.ts'

interface Configured {
  readonly path: Path
  readonly value: ConfiguredPlugin
}

/**
 * What is wrong with a config, in the order of its file. `schema` is `buildConfigSchema`'s. Plugins given as
 * configured values are checked against their own options; those named by package or file are not, they are not
 * loaded yet. A key that is there but undefined counts as absent.
 */
export function checkConfig(loaded: LoadedConfig, schema: object): Problem[] {
  const configured: Configured[] = []
  const view = plainView(loaded.config, [], configured)
  const problems = [
    ...checkValue(loaded, [], view, withCallables(schema as JsonSchema)),
    ...configured.flatMap(({ path, value: { plugin, options } }) => {
      const own = path[0] === 'routes' ? withoutRequired(plugin.options) : plugin.options
      return checkValue(loaded, path, plainView(options, path, configured), own)
    }),
  ]
  return inFileOrder(problems)
}

/** Problems whose line is known first, by line. */
export const inFileOrder = (problems: readonly Problem[]): Problem[] =>
  [...problems].sort((one, other) => (one.line ?? Infinity) - (other.line ?? Infinity) || 0)

/** Checks one value of the config, such as a plugin's options; `at` is where it stands. */
export function checkValue(loaded: LoadedConfig, at: Path, value: unknown, schema: object): Problem[] {
  const validate = compile(schema, at)
  if (validate(value)) return []
  return explainProblems(validate.errors ?? [], value, at).map(({ path, ...finding }) => {
    const line = lineOf(loaded, path)
    return { ...finding, file: loaded.file, path: formatPath(path), ...(line !== undefined && { line }) }
  })
}

// Our own schemas need no meta-schema, whose compiling would be a good part of a start.
const ajv = new Ajv2020({
  allErrors: true,
  verbose: true,
  strict: false,
  validateSchema: false,
  code: { optimize: false },
})
ajvFormats.default(ajv)
ajv.addFormat('uri', text => URL.canParse(text))
ajv.addKeyword({ keyword: 'callable', validate: (_: unknown, value: unknown) => typeof value === 'function' })

const compiled = new WeakMap<object, ValidateFunction>()

function compile(schema: object, at: Path): ValidateFunction {
  try {
    const validate = compiled.get(schema) ?? ajv.compile(schema)
    compiled.set(schema, validate)
    return validate
  } catch (cause) {
    throw new StartError(`${formatPath(at)}: the plugin's options schema is not valid: ${errorText(cause)}`, { cause })
  }
}

const withCallablesOf = new WeakMap<object, JsonSchema>()

/** The schema with what only code can hold, and without what only JSON does; one object for one schema. */
function withCallables(schema: JsonSchema): JsonSchema {
  const { $schema: _, ...properties } = schema['properties'] as Record<string, JsonSchema>
  const callable = { callable: true }
  const whole = { ...schema, properties: { ...properties, configureSession: callable, runSession: callable } }
  const known = withCallablesOf.get(schema) ?? whole
  withCallablesOf.set(schema, known)
  return known
}

/**
 * The config as JSON would hold it: no undefined keys, undefined entries as null. Configured plugins are taken out
 * into `configured`; definitions and instances of classes stay as they are.
 */
function plainView(value: unknown, path: Path, configured: Configured[], parents: readonly unknown[] = []): unknown {
  const isOpaque = path[0] === 'toolsets' && path.length > 1 && !Array.isArray(value)
  if (isOpaque || parents.includes(value) || kindOf(value) !== undefined) return value
  const view = (item: unknown, key: string | number) => plainView(item, [...path, key], configured, [...parents, value])
  if (Array.isArray(value)) return Array.from(value, (item, index) => (item === undefined ? null : view(item, index)))
  if (!isPlain(value)) return value
  const entries = Object.entries(value).filter(([key, item]) => {
    if (!isPluginPath(path) || !isConfiguredPlugin(item)) return item !== undefined
    configured.push({ path: [...path, key], value: item })
    return false
  })
  return Object.fromEntries(entries.map(([key, item]) => [key, view(item, key)]))
}

const isPluginPath = (path: Path): boolean =>
  (path.length === 1 && path[0] === 'plugins') || (path.length === 3 && path[0] === 'routes' && path[2] === 'plugins')

function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  // A config that was made in another realm, as by a CommonJS loader, has another Object.prototype.
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

/** The line of a value or, where that is not known, of what it stands in. */
function lineOf({ locate }: LoadedConfig, path: Path): number | undefined {
  for (let length = path.length; length > 0; length -= 1) {
    const position = locate(path.slice(0, length))
    if (position) return position.line
  }
  // The whole config is a place only for what is missing at its top.
  return path.length <= 1 ? locate([])?.line : undefined
}
