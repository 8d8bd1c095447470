// The change bus of processes that serve one config together: the default of the slot `changeBus` where there are several.
import type { Change, ChangeBus } from '../mcp/change-bus.ts'
import type { Neighbours } from './neighbours.ts'

export function createNeighbourBus(neighbours: Neighbours): ChangeBus {
  const listeners = new Set<(change: Change, place?: string) => void>()
  let isHearing = false

  function dispatch(change: Change, place?: string) {
    for (const listener of [...listeners]) listener(change, place)
  }

  function hear() {
    isHearing = true
    neighbours.hear(
      (text, number) => {
        const change: Change = JSON.parse(text)
        // One that stands for many has no place of its own: everybody is told of all of it.
        if (change.kind === 'missed') dispatch(change)
        else dispatch(change, String(number))
      },
      () => dispatch({ kind: 'missed' }),
    )
  }

  return {
    publish: change => neighbours.tell(JSON.stringify(change)),
    subscribe(listener) {
      listeners.add(listener)
      if (!isHearing) hear()
      return () => listeners.delete(listener)
    },
    history: {
      get position() {
        return String(neighbours.last)
      },
      isAfter: (one, other) => Number(one) > Number(other),
      async since(place) {
        const first = Number(place) + 1
        const texts = await neighbours.since(first - 1)
        return texts?.map((text, index) => ({ change: JSON.parse(text), place: String(first + index) }))
      },
    },
  }
}
