// Tools that the person does not want this client to have: left out of lists, and refused when they are called.
import { Failure, type Fields, type Request } from './messages.ts'

export interface IgnoredTools {
  isIgnored(tool: unknown): boolean
  /** Why a request is refused; undefined: it is not. */
  refusalOf(request: Request): Failure | undefined
}

/** `*` is any text, all else is itself. */
const toPattern = (glob: string): RegExp =>
  new RegExp(
    `^${glob
      .split('*')
      .map(part => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
      .join('.*')}$`,
    's',
  )

export function createIgnoredTools(globs: readonly string[]): IgnoredTools {
  const patterns = globs.map(toPattern)
  const isNamed = (name: unknown) => typeof name === 'string' && patterns.some(pattern => pattern.test(name))
  return {
    isIgnored: tool => isNamed((tool as Fields | null)?.['name']),
    refusalOf({ method, params }) {
      if (method !== 'tools/call' || !isNamed(params['name'])) return undefined
      return new Failure('ignored', `the tool ${JSON.stringify(params['name'])} is left out by --ignore-tool`, {
        code: -32_602,
      })
    },
  }
}
