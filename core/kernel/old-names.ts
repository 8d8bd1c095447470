// Deprecated names of plugin host members. Remove this file with the next minor version.
import type { Logger } from './log.ts'

/** Each old name with its new one; `config.` names are members of `host.config`. */
export const OLD_NAMES = {
  admit: 'authorize',
  around: 'onCall',
  at: 'config.at',
  checking: 'onReady',
  closing: 'onClose',
  contribute: 'toolset',
  directory: 'config.directory',
  draining: 'preClose',
  edge: 'onRequest',
  figures: 'metrics',
  fill: 'provide',
  http: 'config.http',
  identify: 'authenticate',
  keys: 'config.keys',
  node: 'config.node',
  observe: 'onFinish',
  processes: 'config.processes',
  purpose: 'config.purpose',
  ready: 'readiness',
  reconfigure: 'onReload',
  routeEndpoint: 'endpoint',
  section: 'config.section',
  server: 'config.server',
  starting: 'onStart',
} as const

/** Members that are no longer part of the plugin API. */
const RETIRED = [
  'checkReadiness',
  'cors',
  'countTogether',
  'crossOrigin',
  'explain',
  'inEveryProcess',
  'method',
  'ownKeys',
  'reads',
  'redirect',
  'revisions',
  'share',
  'unlist',
  'url',
  'variesByCaller',
] as const

type Member<Host, Path> = Path extends `config.${infer Key}`
  ? Host extends { config: infer Config }
    ? Config[Key & keyof Config]
    : never
  : Host[Path & keyof Host]

/** `Published` with the old names, and the retired members of `All`. */
export type WithOldNames<Published, All> = Published & {
  readonly [Old in keyof typeof OLD_NAMES]: Member<All, (typeof OLD_NAMES)[Old]>
} & Pick<All, (typeof RETIRED)[number] & keyof All> & { readonly crossOrigin: Member<All, 'cors'> }

const read = (host: object, path: string): unknown =>
  path.split('.').reduce<unknown>((from, key) => Reflect.get(Object(from), key), host)

/** The file and line that read an old name: the frame above the getter. */
const callerOf = ({ stack = '' }: Error): string | undefined => stack.split('\n')[2]?.trim().replace(/^at /, '')

/** Plugins that use `identify` expect to run for each request, also for users of other plugins, which they can refuse. */
const identifyOf = (host: object) => (middleware: unknown, options: object | undefined) =>
  (read(host, 'authenticate') as (middleware: unknown, options: object) => void)(middleware, {
    ...options,
    always: true,
  })

const SEE = 'see "Old names" in docs/plugins.md'

/** Adds warnings to deprecated members. `warned` has the names that were logged, for all instances of all plugins. */
export function addOldNames(host: { readonly name: string; readonly log: Logger }, warned: Set<string>): void {
  const deprecate = (old: string, value: () => unknown, text: string) => {
    function get() {
      const key = `${host.name} ${old}`
      if (!warned.has(key)) {
        host.log.warn({ code: 'MH1520', used: callerOf(new Error()) }, `host.${old} is deprecated${text}`)
      }
      warned.add(key)
      return value()
    }
    Object.defineProperty(host, old, { get, enumerable: false })
  }
  for (const [old, path] of Object.entries(OLD_NAMES)) {
    const value = old === 'identify' ? () => identifyOf(host) : () => read(host, path)
    deprecate(old, value, `. Use host.${path}; ${SEE}.`)
  }
  // All values are read before the first member is replaced.
  const retired = RETIRED.map(name => [name, read(host, name === 'crossOrigin' ? 'cors' : name)] as const)
  for (const [name, value] of retired) deprecate(name, () => value, `, and not part of the plugin API; ${SEE}.`)
}
