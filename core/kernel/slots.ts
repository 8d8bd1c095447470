// Replaceable services. Each slot has a default, which a plugin can replace for its routes.
import { StartError } from '../http/errors.ts'
import type { Route } from './route.ts'

interface SlotProvider {
  readonly name: string
  readonly routes: readonly Route[]
}

export interface SlotTable<Slots extends object> {
  /** Throws a StartError for an unknown or taken slot, an incomplete service, and after `seal`. */
  fill<Name extends keyof Slots>(slot: Name, service: Slots[Name], provider: SlotProvider): void
  seal(): void
  get<Name extends keyof Slots>(slot: Name, route: Route): Slots[Name]
  isFilled(slot: keyof Slots, route: Route): boolean
  all<Name extends keyof Slots>(slot: Name, routes: readonly Route[]): readonly Slots[Name][]
}

interface SlotRules<Slots extends object> {
  findProblem(slot: string, service: unknown): string | undefined
  /**
   * Returns services for other slots that come with a service, unless the same plugin fills these slots. `get`: the
   * services so far.
   */
  impliedServices(filled: Partial<Slots>, get: <Name extends keyof Slots>(slot: Name) => Slots[Name]): Partial<Slots>
}

export function createSlots<Slots extends object>(
  defaults: Slots,
  { findProblem, impliedServices }: SlotRules<Slots>,
): SlotTable<Slots> {
  const filled = new Map<keyof Slots, Map<Route, { readonly service: unknown; readonly by: string }>>()
  let sealed = false

  function get<Name extends keyof Slots>(slot: Name, route: Route): Slots[Name] {
    const found = filled.get(slot)?.get(route)
    return found ? (found.service as Slots[Name]) : defaults[slot]
  }

  function fill(slot: keyof Slots, service: Slots[keyof Slots], { name, routes }: SlotProvider) {
    const refuse = (why: string) => new StartError('MH1505', `plugins.${name}: ${why}`, { exitCode: 2 })
    const problem = findProblem(String(slot), service)
    if (problem !== undefined) throw refuse(problem)
    const byRoute = filled.get(slot) ?? new Map()
    filled.set(slot, byRoute)
    for (const route of routes) {
      const other = byRoute.get(route)?.by
      if (other === name)
        throw refuse(`it provides ${String(slot)} for routes['${route.path}'] twice; call host.provide once`)
      if (other !== undefined) {
        const where = `${other} already provides the ${String(slot)} of routes['${route.path}']`
        throw refuse(`${where}; disable one of them there`)
      }
      byRoute.set(route, { service, by: name })
    }
  }

  return {
    fill(slot, service, { name, routes }) {
      if (sealed) throw new Error(`host.provide('${String(slot)}') must be called in setup`)
      fill(slot, service, { name, routes })
      const [first] = routes
      if (!first) return
      const parts = impliedServices({ [slot]: service } as unknown as Partial<Slots>, other => get(other, first))
      for (const [part, value] of Object.entries(parts) as Array<[keyof Slots, Slots[keyof Slots]]>) {
        const others = routes.filter(route => filled.get(part)?.get(route)?.by !== name)
        fill(part, value, { name, routes: others })
      }
    },
    seal() {
      sealed = true
    },
    get,
    isFilled: (slot, route) => filled.get(slot)?.has(route) ?? false,
    all: (slot, routes) => [...new Set(routes.map(route => get(slot, route)))],
  }
}
