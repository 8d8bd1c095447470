// Deprecated names of plugin host members. Remove this file with the next minor version.
import type { Logger } from './log.ts'

/** Each old name with its new one; `config.` names are members of `host.config`. */
export const OLD_NAMES = {
  admit: 'authorize',
  around: 'onCall',
  checking: 'onReady',
  closing: 'onClose',
  contribute: 'tools',
  crossOrigin: 'cors',
  directory: 'config.directory',
  draining: 'preClose',
  edge: 'onRequest',
  figures: 'metrics',
  fill: 'provide',
  http: 'config.http',
  identify: 'authenticate',
  node: 'config.node',
  observe: 'onFinish',
  processes: 'config.processes',
  purpose: 'config.purpose',
  ready: 'readiness',
  reconfigure: 'onReload',
  server: 'config.server',
  starting: 'onStart',
} as const

type OldName = keyof typeof OLD_NAMES
type Member<Host, Path> = Path extends `config.${infer Key}`
  ? Host extends { config: infer Config }
    ? Config[Key & keyof Config]
    : never
  : Host[Path & keyof Host]

/** The members of `Host` by their old names. */
export type WithOldNames<Host> = Host & { readonly [Old in OldName]: Member<Host, (typeof OLD_NAMES)[Old]> }

const read = (host: object, path: string): unknown =>
  path.split('.').reduce<unknown>((from, key) => Reflect.get(Object(from), key), host)

/** The file and line that read an old name: the frame above the getter. */
const callerOf = ({ stack = '' }: Error): string | undefined => stack.split('\n')[2]?.trim().replace(/^at /, '')

/** Adds the old names to a plugin host. `warned` has the names that were logged, for all instances of all plugins. */
export function addOldNames<Host extends { readonly name: string; readonly log: Logger }>(
  host: Host,
  warned: Set<string>,
): WithOldNames<Host> {
  const getters = Object.entries(OLD_NAMES).map(([old, path]) => {
    const get = () => {
      const key = `${host.name} ${old}`
      if (!warned.has(key)) {
        const text = `host.${old} is deprecated. Use host.${path}; see "Old names" in docs/plugins.md.`
        host.log.warn({ code: 'MH1520', used: callerOf(new Error()) }, text)
      }
      warned.add(key)
      return read(host, path)
    }
    return [old, { get }] as const
  })
  return Object.defineProperties(host, Object.fromEntries(getters)) as WithOldNames<Host>
}
