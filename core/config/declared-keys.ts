// Keys that plugins add to the config, to routes and to tools, with the JSON Schemas of their values.

import { isDeepStrictEqual } from 'node:util'
import { StartError } from '../http/errors.ts'

/** Keys by name, each with its JSON Schema or, for `context`, its value on routes without the plugin. */
type Keys<Value = object> = ReadonlyMap<string, { readonly value: Value; readonly plugin: string }>

export interface DeclaredKeys {
  readonly sections: Keys
  readonly routeKeys: Keys
  readonly storeKeys: Keys
  readonly toolKeys: Keys
  readonly context: Keys<unknown>
}

export interface Declaring {
  readonly options: object
  readonly sections?: object | undefined
  readonly routeKey?: string | undefined
  readonly storeKey?: string | undefined
  readonly toolKeys?: object | undefined
  readonly context?: object | undefined
}

type Kind = keyof DeclaredKeys

const WORDS: Readonly<Record<Kind, string>> = {
  sections: 'the section',
  routeKeys: 'the route key',
  storeKeys: 'the key of `store`',
  toolKeys: 'the tool key',
  context: 'the member of `ctx`',
}

/** Throws a StartError for a name of `taken`, and if two plugins declare one name with different schemas or values. */
export function collectKeys(
  plugins: Iterable<readonly [name: string, plugin: Declaring]>,
  taken: Readonly<Partial<Record<Kind, readonly string[]>>> = {},
): DeclaredKeys {
  const keys = {
    ...{ sections: new Map(), routeKeys: new Map(), storeKeys: new Map(), toolKeys: new Map(), context: new Map() },
  }
  for (const [plugin, { options, sections, routeKey, storeKey, toolKeys, context }] of plugins) {
    const routeKeys = routeKey === undefined ? {} : { [routeKey]: options }
    const storeKeys = storeKey === undefined ? {} : { [storeKey]: options }
    for (const [kind, declared] of Object.entries({ sections, routeKeys, storeKeys, toolKeys, context }) as [
      Kind,
      object,
    ][]) {
      for (const [name, value] of Object.entries(declared ?? {})) {
        const refuse = (why: string) =>
          new StartError('MH1026', `it declares ${WORDS[kind]} "${name}", ${why}`, { at: ['plugins', plugin] })
        if (taken[kind]?.includes(name)) throw refuse('which is a key of mcp-host')
        const other = keys[kind].get(name) ?? { value, plugin }
        const isShared = kind !== 'routeKeys' && kind !== 'storeKeys' && isDeepStrictEqual(other.value, value)
        if (other.plugin !== plugin && !isShared) {
          const what = kind === 'context' ? 'value' : 'schema'
          throw refuse(
            `and so does ${other.plugin}, with another ${what}; plugins that share a key must declare the same ${what}`,
          )
        }
        keys[kind].set(name, other)
      }
    }
  }
  return keys
}
