// What the contracts of all slots are made of: named checks, each on services that know nothing yet.
import { AssertionError } from 'node:assert'
import { inspect, isDeepStrictEqual } from 'node:util'

/** One promise of an interface: `it(name, run)` in mocha, vitest and node:test. */
export interface Check {
  readonly name: string
  /** Rejects with an AssertionError where the promise is not kept. */
  run(): Promise<void>
}

/** Services that a check is run on. */
export interface Opened<Service> {
  /** The same service as each of so many nodes has it. */
  readonly nodes: readonly Service[]
  /** Called once the check is over. */
  close?(): void | Promise<void>
}

/** What a contract is run against. */
export interface ContractSettings<Service> {
  /** Whether it is for several nodes. Then there are more checks, and those need two. */
  readonly shared: boolean
  /** Begins a service that knows nothing, on as many nodes; called for each check anew. */
  open(nodes: number): Opened<Service> | Promise<Opened<Service>>
}

/** What one node sees, and what two nodes see of each other. */
export interface Promises<Service> {
  readonly alone: Readonly<Record<string, (service: Service) => Promise<void>>>
  readonly together: Readonly<Record<string, (one: Service, other: Service) => Promise<void>>>
}

export function checksOf<Service>(
  { shared, open }: ContractSettings<Service>,
  { alone, together }: Promises<Service>,
): readonly Check[] {
  const check = (name: string, count: number, act: (nodes: readonly Service[]) => Promise<void>): Check => ({
    name,
    async run() {
      const { nodes, close } = await open(count)
      try {
        if (nodes.length < count) throw new Error(`open(${count}) gave ${nodes.length} nodes`)
        await act(nodes)
      } finally {
        await close?.()
      }
    },
  })
  return [
    ...Object.entries(alone).map(([name, act]) => check(name, 1, ([one]) => act(one as Service))),
    ...Object.entries(shared ? together : {}).map(([name, act]) =>
      check(`two nodes: ${name}`, 2, ([one, other]) => act(one as Service, other as Service)),
    ),
  ]
}

/** Throws, in words, where a service gave something else: its author sees no more of a check than what it throws. */
export function same(actual: unknown, expected: unknown, promise: string): void {
  if (isDeepStrictEqual(actual, expected)) return
  const message = `${promise}: expected ${inspect(expected, { depth: 6 })}, found ${inspect(actual, { depth: 6 })}`
  throw new AssertionError({ message, actual, expected, operator: 'deepStrictEqual' })
}

/** Throws, in words, where this is not so. */
export function holds(kept: unknown, promise: string): asserts kept {
  if (!kept) throw new AssertionError({ message: promise, actual: kept, expected: true, operator: 'ok' })
}

export const pause = (milliseconds: number) => new Promise<void>(resolve => setTimeout(resolve, milliseconds))

/** How long is waited for what a service does not let its caller wait for, milliseconds. */
const PATIENCE = 5_000

/** Until `holds`, or for five seconds: what follows says then what is not as it should be. */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + PATIENCE
  while (!(await holds()) && performance.now() < end) await pause(10)
}
