// Members of `ctx` that plugins add, compiled into one context class per route.

import { StartError } from '../../http/errors.ts'
import { getOrCreate } from '../../http/get-or-create.ts'
import type { Route } from '../../kernel/route.ts'
import type { CallContext } from '../definitions/define.ts'
import { didYouMean } from '../nearest.ts'
import type { Call } from './call.ts'
import { type ContextClass, HandlerContext, type HandlerSettings } from './context.ts'

type CreateMember<Value = unknown> = (call: Call, ctx: CallContext) => Value

export interface Registration {
  readonly name: string
  readonly create: CreateMember
  readonly plugin: string
  /** The names that the plugin declares. */
  readonly declared: readonly string[]
  readonly routes: readonly Route[]
}

export const contextNames = (): string[] => Object.getOwnPropertyNames(HandlerContext.prototype)

/** `defaults`: the declared members, with their values on routes without their plugin. */
export function createContextMembers(defaults: ReadonlyMap<string, { readonly value: unknown }>) {
  const byRoute = new Map<Route, Map<string, { readonly create: CreateMember; readonly plugin: string }>>()
  const compiled = new Map<Route | undefined, ReturnType<HandlerSettings['contextOn']>>()
  const names = [...defaults.keys()]
  const isFunction = (name: string) => typeof defaults.get(name)?.value === 'function'

  function compile(route: Route): ContextClass {
    class RouteContext extends HandlerContext {}
    for (const [name, { value }] of defaults)
      Object.defineProperty(RouteContext.prototype, name, { value, configurable: true })
    for (const [name, { create }] of byRoute.get(route) ?? []) {
      const get = function (this: HandlerContext & CallContext): unknown {
        const value = create(HandlerContext.callOf(this) as Call, this)
        Object.defineProperty(this, name, { value })
        return value
      }
      Object.defineProperty(RouteContext.prototype, name, { get })
    }
    return RouteContext as unknown as ContextClass
  }

  return {
    add({ name, create, plugin, declared, routes }: Registration) {
      const refuse = (why: string) =>
        new StartError('MH1508', `plugins.${plugin}: \`ctx.${name}\` ${why}`, { exitCode: 2 })
      if (!declared.includes(name)) throw refuse(`is not in its \`context\`; ${didYouMean(name, declared)}`)
      for (const route of routes) {
        const members = byRoute.get(route) ?? new Map()
        const other = members.get(name)
        if (other) throw refuse(`is already added by plugins.${other.plugin}; disable one of them`)
        byRoute.set(route, members.set(name, { create, plugin }))
      }
    },
    on(route: Route): ReturnType<HandlerSettings['contextOn']> {
      const key = byRoute.has(route) ? route : undefined
      return getOrCreate(compiled, key, () => {
        const hasValue = (name: string) => byRoute.get(route)?.has(name) || defaults.get(name)?.value !== undefined
        const values = names.filter(name => !isFunction(name) && hasValue(name))
        return { Context: compile(route), functions: names.filter(isFunction), values }
      })
    },
  }
}
