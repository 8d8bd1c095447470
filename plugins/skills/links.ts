// What a symbolic link leads over: each place on the way to where it ends, for rules over any of them hold for what is there.
import { readlink } from 'node:fs/promises'
import { join, parse, sep } from 'node:path'

/** Links in one another, as systems count them. */
const MAX_LINKS = 40

/** Whether a path is a folder or below it. */
export const isInside = (root: string, path: string): boolean =>
  path === root || path.startsWith(root.endsWith(sep) ? root : root + sep)

const BETWEEN = sep === '/' ? /\// : /[\\/]/
const segmentsOf = (path: string) => path.split(BETWEEN).filter(name => name !== '' && name !== '.')

/**
 * The paths below `root` that a path to a link leads over, each as far as it is known by then, the last being where it ends.
 * `root` has no link in it.
 */
export async function placesOver(root: string, path: string): Promise<string[]> {
  const { root: top } = parse(path)
  let place = top
  let rest = segmentsOf(path.slice(top.length))
  const over: string[] = []
  for (let links = 0; links <= MAX_LINKS; ) {
    const [name, ...further] = rest
    if (name === undefined) break
    rest = further
    if (name === '..') {
      place = join(place, '..')
      continue
    }
    const target = await readlink(join(place, name)).catch(() => undefined)
    if (target === undefined) {
      place = join(place, name)
      continue
    }
    links++
    const { root: otherTop } = parse(target)
    if (otherTop !== '') place = otherTop
    rest = [...segmentsOf(target.slice(otherTop.length)), ...rest]
    const whole = join(place, ...rest)
    if (isInside(root, whole)) over.push(whole)
  }
  if (isInside(root, place)) over.push(place)
  return over
}
