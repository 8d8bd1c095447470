// Tool keys of plugins by route, and the chains of wrappers around handlers.

import { StartError } from '../../http/errors.ts'
import { getOrCreate } from '../../http/get-or-create.ts'
import type { ToolItem } from '../definitions/catalog.ts'
import type { CallContext, ToolDefinition } from '../definitions/define.ts'
import { keyValue, type ListedKey, readKeys } from '../definitions/tool-keys.ts'
import { didYouMean } from '../nearest.ts'
import type { Call } from './call.ts'

type MaybePromise<T> = T | Promise<T>

/** Runs the handler, with replaced arguments or context if given. */
type RunTool = (replacement?: (args: never, ctx: CallContext) => MaybePromise<object>) => MaybePromise<object>

/** The effects of a tool key. `Value`: the type of its values. */
export interface ToolKey<Value = never> extends ListedKey<Value> {
  /**
   * Wraps the handler, after access and argument checks. `run` counts towards `concurrency`. The plugin that is set up first is
   * outermost.
   */
  onCall?(call: Call, value: Value, run: RunTool, tool: ToolDefinition): MaybePromise<object>
}

type Chain = (call: Call, run: RunTool) => MaybePromise<object>

export interface Registration {
  readonly name: string
  readonly key: ToolKey
  readonly plugin: string
  readonly declared: readonly string[]
  readonly routes: readonly object[]
}

export type RouteToolKeys = ReturnType<typeof createToolKeys>

const compileChain = (tool: ToolItem, read: ReadonlyMap<string, ToolKey>): Chain | undefined =>
  readKeys(tool, read)
    .flatMap(([name, { onCall }]) => (onCall ? [[keyValue(tool.definition, name), onCall] as const] : []))
    .reduceRight<Chain | undefined>((inner, [value, onCall]) => {
      return (call, run) =>
        onCall(
          call,
          value,
          replacement => {
            const own: RunTool = args => run(args ?? replacement)
            return inner ? inner(call, own) : own()
          },
          tool.definition,
        )
    }, undefined)

export function createToolKeys() {
  const byRoute = new Map<object, Map<string, ToolKey>>()
  const owners = new Map<object, Map<string, string>>()
  let chains = new Map<object, WeakMap<ToolItem, { readonly chain: Chain | undefined }>>()

  const on = (route: object) => getOrCreate(byRoute, route, () => new Map<string, ToolKey>())

  return {
    on,
    reads: (name: string) => [...byRoute.values()].some(keys => keys.has(name)),
    add({ name, key, plugin, declared, routes }: Registration) {
      const refuse = (why: string) =>
        new StartError('MH1508', `plugins.${plugin}: the tool key "${name}" ${why}`, { exitCode: 2 })
      if (!declared.includes(name)) throw refuse(`is not in its \`toolKeys\`; ${didYouMean(name, declared)}`)
      for (const route of routes) {
        const ofRoute = getOrCreate(owners, route, () => new Map<string, string>())
        const owner = ofRoute.get(name)
        if (owner !== undefined) throw refuse(`is already read by plugins.${owner}; disable one of them`)
        ofRoute.set(name, plugin)
        on(route).set(name, key)
      }
      chains = new Map()
    },
    chainOf(route: object, tool: ToolItem) {
      const ofRoute = getOrCreate(chains, route, () => new WeakMap())
      return getOrCreate(ofRoute, tool, () => ({ chain: compileChain(tool, on(route)) })).chain
    },
  }
}
