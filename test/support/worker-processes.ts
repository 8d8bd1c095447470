// Simulates the processes of `--workers` in one process, with the real hub over ordered channels.
import { createHub, type Hub, type HubLimits } from '../../cli/workers/hub.ts'
import { createHubClient } from '../../cli/workers/hub-client.ts'
import type { Neighbours } from '../../core/slots.ts'

/** One of the processes, and a function that ends it. */
export interface TestNeighbour extends Neighbours {
  end(): void
}

/** Each message is copied as JSON and arrives in its own turn of the event loop. */
export function connectTo(hub: Hub): TestNeighbour {
  let listener: (message: never) => void = () => undefined
  let ended = false
  const deliver = (message: object, to: (message: never) => void) =>
    setImmediate(() => {
      if (!ended) to(JSON.parse(JSON.stringify(message)) as never)
    })
  const member = hub.connect((message, sent) => {
    deliver(message, heard => listener(heard))
    setImmediate(sent)
  })
  const neighbours = createHubClient({
    send(message) {
      if (!ended) deliver(message, said => member.receive(said))
      return !ended
    },
    receive(heard) {
      listener = heard as typeof listener
    },
  })
  return Object.assign(neighbours, {
    end() {
      ended = true
      member.remove()
    },
  })
}

/** Creates this number of processes of one host. */
export function startNeighbours(count: number, bounds: Partial<HubLimits> = {}): readonly TestNeighbour[] {
  const hub = createHub(undefined, bounds)
  return Array.from({ length: count }, () => connectTo(hub))
}
