// The timeline of one request: when each stage began.
import type { Timeline } from '../../core/internal.ts'
import type { Stage } from './api.ts'

type Name = Parameters<Timeline['mark']>[0]

const rounded = (milliseconds: number) => Math.round(milliseconds * 100) / 100

export class RequestTimeline implements Timeline {
  readonly #marks: Array<{ readonly name: Name; readonly at: number }>
  #end: number | undefined

  constructor(marks: RequestTimeline['marks'] = [{ name: 'guard', at: performance.now() }]) {
    this.#marks = [...marks]
  }

  get marks(): ReadonlyArray<{ readonly name: Name; readonly at: number }> {
    return this.#marks
  }

  /** Only the first time that a stage begins counts. */
  mark(name: Name): void {
    if (this.#end !== undefined || this.#marks.some(mark => mark.name === name)) return
    this.#marks.push({ name, at: performance.now() })
  }

  fork(): RequestTimeline {
    return new RequestTimeline(this.#marks)
  }

  end(): void {
    this.#end ??= performance.now()
  }

  /** A stage that has not ended ends now. */
  stages(): Stage[] {
    const [first] = this.#marks
    const since = (at: number) => rounded(at - (first?.at ?? at))
    return this.#marks.map(({ name, at }, index) => {
      const start = since(at)
      const end = since(this.#marks[index + 1]?.at ?? this.#end ?? performance.now())
      return { name, start, ms: rounded(end - start) }
    })
  }
}
