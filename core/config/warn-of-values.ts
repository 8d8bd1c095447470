// Warns about valid values that are probably mistakes.
import { type Path, type Report, StartError } from '../http/errors.ts'
import type { Plugin } from '../kernel/define-plugin.ts'
import type { PluginInstance } from '../kernel/plugin-plan.ts'
import { type FilledConfig, isPlain } from './define-config.ts'
import { isSecretAt } from './walk-schema.ts'

interface ValueFacts {
  readonly config: FilledConfig
  readonly schema: object
  readonly instances: readonly Pick<PluginInstance, 'plugin' | 'at'>[]
  readonly plugins: ReadonlyMap<string, Pick<Plugin<object>, 'sections'>>
  readonly report: Report
}

export function warnOfValues({ config, instances, plugins, report }: Omit<ValueFacts, 'schema'>): void {
  const warn = (code: string, why: string, ...at: Path) => report(new StartError(code, why, { at }), 'warning')
  const { publicUrl } = config.http
  const path = publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/$/, '')
  const repeated = Object.keys(config.routes).find(route => path !== '' && route.replace(/\/$/, '') === path)
  if (repeated !== undefined) {
    const why = `with routes['${repeated}'] clients would use ${publicUrl}${repeated}; remove the route's path from it`
    warn('MH1225', why, 'http', 'publicUrl')
  }
  for (const name of new Set([...plugins.values()].flatMap(plugin => Object.keys(plugin.sections ?? {})))) {
    const isUsed = instances.some(({ plugin }) => Object.hasOwn(plugin.sections ?? {}, name))
    if (!isUsed && Reflect.get(config, name) !== undefined)
      warn('MH1017', 'no plugin of this config uses this section', name)
  }
}

const PLACEHOLDER = /^(\$\{[^{}]*\}|\$\{\{.*\}\}|\{\{.*\}\}|\$[A-Z][A-Z0-9_]+|%[A-Z][A-Z0-9_]+%)$/
const PLACEHOLDERS = 'placeholders are not replaced; use a config in TypeScript or JavaScript with process.env'
const UNSET = 'the text contains "undefined": is its environment variable set?'
const UNDEFINED = /^(?:\w+ )?undefined$|^https?:\/\/undefined\b/
const MAX_DEPTH = 8

export const isPlaceholder = (value: unknown): boolean => typeof value === 'string' && PLACEHOLDER.test(value)

/** Reports placeholders such as `${SECRET}` and `undefined` in templates. A secret placeholder is an error: it is public. */
export function checkPlaceholders({ config, schema, instances, report }: Omit<ValueFacts, 'plugins'>): void {
  const parts = [{ at: [], plugin: { options: schema } }, ...instances]
  const isIn = (at: Path, path: Path) => at.every((key, index) => key === path[index])
  const isSecret = (path: Path) =>
    parts.some(({ at, plugin }) => isIn(at, path) && isSecretAt(plugin.options, path.slice(at.length)))
  function check(value: unknown, at: Path): void {
    const unset = typeof value === 'string' && UNDEFINED.test(value) && UNSET
    const why = isPlaceholder(value) ? PLACEHOLDERS : unset
    if (why) report(new StartError('MH1016', why, { at }), why === PLACEHOLDERS && isSecret(at) ? 'error' : 'warning')
    if (at.length > MAX_DEPTH || (!Array.isArray(value) && !isPlain(value))) return
    for (const [key, inner] of Object.entries(value)) check(inner, [...at, Array.isArray(value) ? Number(key) : key])
  }
  check({ ...config, toolsets: undefined }, [])
}
