// Counts created objects by wrapping their constructors. Must be imported before the counted code.
import { createHook } from 'node:async_hooks'
import { EventEmitter } from 'node:events'

/** How often each was made or called. */
export interface Made {
  /** As Node's own, each time `await` or `then` makes one. */
  promises: number
  /** Of Node itself and of the host. */
  timers: number
  /** `setTimeout`, `setInterval` and `setImmediate` by their global names, which Node itself does not use. */
  ownTimers: number
  controllers: number
  /** Of event emitters and event targets. */
  listeners: number
  serializations: number
  /** Length of what was serialized. */
  serialized: number
  /** Functions made of text, as ajv makes validators. */
  compilations: number
}

const NONE: Made = {
  promises: 0,
  timers: 0,
  ownTimers: 0,
  controllers: 0,
  listeners: 0,
  serializations: 0,
  serialized: 0,
  compilations: 0,
}
const made: Made = { ...NONE }

type AnyFunction = (...args: unknown[]) => unknown

/** Replaces a method by one that counts and then calls it. */
function counting(owner: object, name: string, count: (result: unknown) => void): void {
  const original = Reflect.get(owner, name) as AnyFunction
  const wrapped = function (this: unknown, ...args: unknown[]) {
    const result = Reflect.apply(original, this, args)
    count(result)
    return result
  }
  // What belongs to a function, as the promisified form does to `setTimeout`.
  Object.defineProperties(wrapped, Object.getOwnPropertyDescriptors(original))
  Object.defineProperty(owner, name, { value: wrapped, writable: true, configurable: true })
}

/** Replaces a global class by one that counts. */
function countingNew(name: 'AbortController' | 'Function', count: () => void): void {
  const counted = new Proxy(globalThis[name] as object, {
    construct(target, args, self) {
      count()
      return Reflect.construct(target as AnyFunction, args, self)
    },
    apply(target, self, args) {
      count()
      return Reflect.apply(target as AnyFunction, self, args)
    },
  })
  Object.defineProperty(globalThis, name, { value: counted, writable: true, configurable: true })
}

for (const name of ['setTimeout', 'setInterval', 'setImmediate']) counting(globalThis, name, () => made.ownTimers++)
for (const name of ['on', 'addListener', 'prependListener']) {
  counting(EventEmitter.prototype, name, () => made.listeners++)
}
counting(EventTarget.prototype, 'addEventListener', () => made.listeners++)
counting(JSON, 'stringify', text => {
  made.serializations++
  made.serialized += typeof text === 'string' ? text.length : 0
})
countingNew('AbortController', () => made.controllers++)
countingNew('Function', () => made.compilations++)
createHook({
  init(_id, type) {
    if (type === 'PROMISE') made.promises++
    else if (type === 'Timeout' || type === 'Immediate') made.timers++
  },
}).enable()

/** What was made since it was asked last. */
export function takeMade(): Made {
  const taken = { ...made }
  Object.assign(made, NONE)
  return taken
}
