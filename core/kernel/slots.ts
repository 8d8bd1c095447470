// Replaceable services, by route: each slot has a default, and a plugin that fills it does so for its own routes alone.
import { StartError } from '../http/errors.ts'
import type { Route } from './route.ts'

/** Who fills a slot, and where. */
export interface Filler {
  readonly name: string
  readonly routes: readonly Route[]
}

export interface SlotTable<Slots extends object> {
  /** Throws a StartError where there is no such slot, the service lacks a method, another plugin has the slot on one of these routes, and once `seal` was called. */
  fill<Name extends keyof Slots>(slot: Name, service: Slots[Name], filler: Filler): void
  /** Nothing is filled from now on: services are built from what is here. */
  seal(): void
  /** The service of a route. */
  on<Name extends keyof Slots>(slot: Name, route: Route): Slots[Name]
  /** Whether a plugin filled the slot for this route. */
  isFilled(slot: keyof Slots, route: Route): boolean
  /** The services of these routes, each once. */
  all<Name extends keyof Slots>(slot: Name, routes: readonly Route[]): readonly Slots[Name][]
}

/** The methods that a service lacks, beside those of the default one. */
function missingFrom(service: unknown, standard: object, optional: readonly string[]): string[] {
  const has = (name: string) => service != null && typeof Reflect.get(Object(service), name) === 'function'
  const needed = Object.keys(standard).filter(name => typeof Reflect.get(standard, name) === 'function')
  return needed.filter(name => !optional.includes(name) && !has(name))
}

/** The slots of a host, with what is in them where nobody fills them. A service has the methods of its default but the `optional`. */
export function createSlots<Slots extends object>(defaults: Slots, optional: readonly string[] = []): SlotTable<Slots> {
  const filled = new Map<keyof Slots, Map<Route, { readonly service: unknown; readonly by: string }>>()
  let sealed = false

  function on<Name extends keyof Slots>(slot: Name, route: Route): Slots[Name] {
    const found = filled.get(slot)?.get(route)
    return found ? (found.service as Slots[Name]) : defaults[slot]
  }

  return {
    fill(slot, service, { name, routes }) {
      if (sealed) throw new Error(`the slot ${String(slot)} is filled in setup, not later`)
      const refuse = (why: string) => new StartError(`plugins.${name}: ${why}`, { exitCode: 2 })
      if (!Object.hasOwn(defaults, slot)) {
        throw refuse(`there is no slot "${String(slot)}"; there are: ${Object.keys(defaults).join(', ')}`)
      }
      const missing = missingFrom(service, defaults[slot] as object, optional)
      if (missing.length > 0) {
        const what = service === undefined || service === null ? String(service) : `a ${typeof service}`
        throw refuse(
          `what it fills the slot ${String(slot)} with is ${what} that lacks the methods ${missing.join(', ')}`,
        )
      }
      const byRoute = filled.get(slot) ?? new Map()
      filled.set(slot, byRoute)
      for (const route of routes) {
        const other = byRoute.get(route)?.by
        if (other === name) throw refuse(`it fills the ${String(slot)} of routes['${route.path}'] twice; once is to be`)
        if (other !== undefined) {
          const where = `${other} already provides the ${String(slot)} of routes['${route.path}']`
          throw refuse(`${where}; switch one of them off there`)
        }
        byRoute.set(route, { service, by: name })
      }
    },
    seal() {
      sealed = true
    },
    on,
    isFilled: (slot, route) => filled.get(slot)?.has(route) ?? false,
    all: (slot, routes) => [...new Set(routes.map(route => on(slot, route)))],
  }
}
