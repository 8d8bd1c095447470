// Whose an address is, where several routes' paths match it: the narrowest's, and nobody else's, neither the address
// itself nor anything below it. Between the patterns (path-pattern.ts) and the routes (routes.ts).
import { StartError } from './errors.ts'
import { covers, fill, formsOf, meetingOf, type Pattern, rankOf, shapeOf } from './path-pattern.ts'
import { stopAtFirst } from './start-error.ts'

type Params = Readonly<Record<string, string>>

/** What a route's addresses look like, with its optional parameter or without. */
interface Form {
  /** As configured. */
  readonly path: string
  readonly pattern: Pattern
  readonly shortened: boolean
}

/** Of two forms that meet and do not cross. */
function isNarrower(one: Form, other: Form): boolean {
  const [first, second] = [rankOf(one.pattern), rankOf(other.pattern)]
  return first === second ? other.shortened && !one.shortened : first < second
}

/** Reports two routes that have one place, and a place that is as much one route's as another's. */
function checkPair(
  one: Form,
  other: Form,
  shapes: ReadonlySet<string>,
  report: (of: string, mistake: StartError) => void,
) {
  const meeting = meetingOf(one.pattern, other.pattern)
  if (!meeting) return
  const beside = `routes['${other.path}']`
  const clash = (why: string) =>
    report(one.path, new StartError(why, { at: ['routes', one.path], also: [{ at: ['routes', other.path] }] }))
  const shape = shapeOf(meeting)
  if (shapeOf(one.pattern) === shapeOf(other.pattern)) {
    if (one.shortened === other.shortened) clash(`it and ${beside} are one path; change one of them`)
  } else if (!covers(one.pattern, other.pattern) && !covers(other.pattern, one.pattern) && !shapes.has(shape)) {
    const place = `/${meeting.map(({ text }) => text).join('/')}`
    const fix = `say what is there with routes['${place}'], or change one of them`
    clash(`it and ${beside} both match ${place}, and neither is the narrower; ${fix}`)
  }
}

export interface RoutePlaces {
  /** Whether it was reported: it has no place. */
  isLost(path: string): boolean
  /** Whether a narrower route has the address of this route with these parameters. */
  isTaken(path: string, params: Params): boolean
  /** Whether narrower routes have every address of this route that has these parameters. */
  isWhollyTaken(path: string, params: Params): boolean
}

/** Reports where the order of the routes would decide. `patterns` are by the paths as configured. */
export function placeRoutes(patterns: ReadonlyMap<string, Pattern>, report = stopAtFirst): RoutePlaces {
  const forms = [...patterns].flatMap(([path, pattern]) => formsOf(pattern).map(form => ({ path, ...form })))
  const shapes = new Set(forms.map(({ pattern }) => shapeOf(pattern)))
  const lost = new Set<string>()
  const lose = (path: string, mistake: StartError) => {
    if (!lost.has(path)) report(mistake)
    lost.add(path)
  }
  for (const [index, form] of forms.entries()) {
    for (const other of forms.slice(0, index)) if (other.path !== form.path) checkPair(form, other, shapes, lose)
  }
  /** The forms of each route, each with those of others that are narrower. */
  const byRoute = new Map(
    [...patterns.keys()].map(path => [
      path,
      forms
        .filter(form => form.path === path)
        .map(form => {
          const met = forms.filter(other => other.path !== path && meetingOf(other.pattern, form.pattern))
          return { form, narrower: met.filter(other => isNarrower(other, form)) }
        }),
    ]),
  )
  const isFull = ({ pattern }: Form, params: Params) =>
    pattern.every(({ parameter }) => parameter === undefined || params[parameter] !== undefined)

  return {
    isLost: path => lost.has(path),
    isTaken(path, params) {
      // The longest form that these parameters fill is the address.
      const { form, narrower } = byRoute.get(path)?.find(entry => isFull(entry.form, params)) ?? {}
      if (!form || !narrower || narrower.length === 0) return false
      const address = fill(form.pattern, params)
      return narrower.some(({ pattern }) => covers(pattern, address))
    },
    isWhollyTaken(path, params) {
      const entries = byRoute.get(path) ?? []
      const named = Object.keys(params)
      const having = entries.filter(({ form }) =>
        named.every(name => form.pattern.some(({ parameter }) => parameter === name)),
      )
      return having.every(({ form, narrower }) => {
        const addresses = fill(form.pattern, params)
        return narrower.some(({ pattern }) => covers(pattern, addresses))
      })
    },
  }
}
