// Label values that others choose: the first so many are kept, and all others are counted together.

/** In the place of whatever came too late. */
export const OTHER = '_OTHER'

export interface BoundedNames {
  has(name: string): boolean
  /** Gives it a place, where there is room; false where there is none. `guest`: among those that have half of the places at most. */
  enter(name: string, guest?: boolean): boolean
}

export function createBoundedNames(most: number): BoundedNames {
  const known = new Set<string>()
  const mostGuests = Math.ceil(most / 2)
  let guests = 0
  return {
    has: name => known.has(name),
    enter(name, guest = false) {
      if (known.size >= most || (guest && guests >= mostGuests)) return false
      known.add(name)
      if (guest) guests++
      return true
    },
  }
}
