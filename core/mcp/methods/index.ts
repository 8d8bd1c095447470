// The method table. Methods outside the table, protocol version or view get -32601.

import { HostError, StartError } from '../../http/errors.ts'
import type { Call } from '../calls/call.ts'
import type { HandlerSettings } from '../calls/context.ts'
import { shown } from '../client-limits.ts'
import type { View } from '../routes/view.ts'
import { complete } from './completion.ts'
import { discover, initialize } from './lifecycle.ts'
import { listResources } from './list-resources.ts'
import { CHECKS, paramsText } from './params.ts'
import { getPrompt } from './prompts.ts'
import { readResource } from './resources.ts'
import { setLevel, subscribe, unsubscribe } from './session-settings.ts'
import { callTool } from './tools.ts'

export interface Method {
  readonly handle: (call: Call, settings: HandlerSettings) => object | Promise<object>
  readonly by?: string
  /** Undefined: every version. */
  readonly era?: 'modern' | 'legacy'
  readonly capability?: keyof View['capabilities']
}

const list = (name: Parameters<View['page']>[0]) => (call: Call) =>
  call.view.page(name, call.params['cursor'], call.rules)

// Lists need no capability: some clients disconnect after -32601 for a list.
const METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  ['server/discover', { handle: discover, era: 'modern' }],
  ['initialize', { handle: initialize, era: 'legacy' }],
  ['ping', { handle: () => ({}), era: 'legacy' }],
  ['logging/setLevel', { handle: setLevel, era: 'legacy' }],
  ['resources/subscribe', { handle: subscribe, era: 'legacy', capability: 'resources' }],
  ['resources/unsubscribe', { handle: unsubscribe, era: 'legacy', capability: 'resources' }],
  ['tools/list', { handle: list('tools') }],
  ['tools/call', { handle: callTool, capability: 'tools' }],
  ['resources/list', { handle: listResources }],
  ['resources/templates/list', { handle: list('resourceTemplates') }],
  ['resources/read', { handle: readResource, capability: 'resources' }],
  ['prompts/list', { handle: list('prompts') }],
  ['prompts/get', { handle: getPrompt, capability: 'prompts' }],
  ['completion/complete', { handle: complete, capability: 'completions' }],
])

const unknownMethod = ({ method }: Call) => new HostError('methodNotFound', { detail: shown(method) })

export type MethodTable = ReturnType<typeof createMethodTable>

const taken = (name: string, { by }: Method, other: Method) =>
  new StartError(
    'MH1509',
    `plugins.${by}: the method "${name}" is handled by plugins.${other.by}; disable one of them`,
    { exitCode: 2 },
  )

export function createMethodTable(settings: HandlerSettings) {
  const added = new Map<object, Map<string, Method>>()

  function find(call: Call): Method | undefined {
    const method = METHODS.get(call.method) ?? added.get(call.offer.route)?.get(call.method)
    const known = method && (method.era === undefined || (method.era === 'modern') === call.modern)
    return known && (!method.capability || call.view.capabilities[method.capability]) ? method : undefined
  }

  return {
    add(name: string, method: Method, routes: readonly object[]) {
      if (METHODS.has(name)) throw new Error(`the method "${name}" is reserved for the host`)
      for (const route of routes) {
        const methods = added.get(route) ?? new Map<string, Method>()
        const other = methods.get(name)
        if (other) throw taken(name, method, other)
        added.set(route, methods.set(name, method))
      }
    },
    has: (name: string, route: object) => METHODS.has(name) || added.get(route)?.has(name) === true,
    /** Throws for invalid params. Undefined for an unknown method. */
    check(call: Call) {
      const problem = CHECKS.get(call.method)?.(call.params)
      const method = find(call)
      if (problem === undefined) return method
      if (!method) throw unknownMethod(call)
      throw new HostError('invalidParams', { detail: `${call.method}: ${paramsText(problem)}` })
    },
    answer(call: Call, method = find(call)) {
      if (!method) throw unknownMethod(call)
      if (!method.capability) call.notes.timeline?.mark('handler')
      return method.handle(call, settings)
    },
  }
}
