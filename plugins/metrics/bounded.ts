// Label values that others choose: the first so many are kept, and all others are counted together.

/** In the place of whatever came too late. */
export const OTHER = '_OTHER'

export interface BoundedNames {
  /** Whether it has a place; `mayEnter`: it gets one, where there is room. */
  has(name: string, mayEnter: boolean): boolean
}

export function createBoundedNames(most: number): BoundedNames {
  const known = new Set<string>()
  return {
    has(name, mayEnter) {
      if (known.has(name)) return true
      if (!mayEnter || known.size >= most) return false
      known.add(name)
      return true
    },
  }
}
