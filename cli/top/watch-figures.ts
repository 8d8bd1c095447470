// The life of `mcp-host top` at a terminal: asks for the page again and again, and draws what it says until somebody quits.
import { setTimeout as pause } from 'node:timers/promises'
import { printable, printableUrl } from '../../client/printable.ts'
import type { Secrets } from '../../client/secrets.ts'
import { errorText } from '../../core/http/errors.ts'
import { NoMetricsError } from '../metrics-page/fetch-page.ts'
import type { MetricsPage } from '../metrics-page/parse-page.ts'
import { figuresOf, isRestart, type TimedPage } from './figures.ts'
import { frameLines, type Order, type Picture } from './frame.ts'
import { openScreen, type TerminalIn, type TerminalOut } from './screen.ts'

/** Milliseconds that rates are of, at most: single calls would make them jump. */
const WINDOW = 10_000

export interface WatchSettings {
  readonly url: string
  /** Milliseconds between two questions. */
  readonly interval: number
  ask(signal: AbortSignal): Promise<MetricsPage>
  readonly input: TerminalIn
  readonly output: TerminalOut
  /** What failures must not show. */
  readonly secrets: Secrets
  /** Ends it. */
  readonly signal: AbortSignal
}

const clock = (at: number) => new Date(at).toTimeString().slice(0, 8)

/** The pages of the last seconds, and what they and their absence come to. */
class Watch {
  readonly #url: string
  readonly #secrets: Secrets
  #pages: TimedPage[] = []
  #problem: { readonly text: string; readonly since: number } | undefined
  #restarted: number | undefined
  isPaused = false
  order: Order = 'rate'

  constructor({ url, secrets }: Pick<WatchSettings, 'url' | 'secrets'>) {
    this.#url = url
    this.#secrets = secrets
  }

  get isFirst(): boolean {
    return this.#pages.length === 0
  }

  take(now: TimedPage) {
    this.#problem = undefined
    const last = this.#pages.at(-1)
    if (last && isRestart(last, now)) {
      this.#pages = []
      this.#restarted = now.at
    }
    const kept = this.#pages.filter(({ at }) => now.at - at <= WINDOW)
    // After a pause the last one is old, and the only one to compare with.
    this.#pages = [...(kept.length > 0 ? kept : this.#pages.slice(-1)), now]
  }

  miss(error: unknown, at: number) {
    const text = printable(this.#secrets.scrub(errorText(error)), 300)
    this.#problem = { text, since: this.#problem?.since ?? at }
  }

  picture(): Picture {
    const now = this.#pages.at(-1)
    const before = this.#pages.length > 1 ? this.#pages[0] : undefined
    const status = [
      this.#problem && `AWAY since ${clock(this.#problem.since)}: ${this.#problem.text}; asking again`,
      this.isPaused && 'PAUSED',
      this.#restarted !== undefined && `the host began anew at ${clock(this.#restarted)}`,
    ]
    return {
      url: printableUrl(this.#url),
      figures: now && figuresOf(before, now),
      status: status.filter(line => typeof line === 'string'),
      order: this.order,
      foot: `q quits, p ${this.isPaused ? 'goes on' : 'pauses'}, s sorts by ${this.order === 'rate' ? 'time' : 'calls'}`,
    }
  }
}

/** Resolves when somebody quits. Rejects with a NoMetricsError where the first answer is no metrics page. */
export async function watchFigures(settings: WatchSettings): Promise<void> {
  const { interval, input, output, ask } = settings
  const over = new AbortController()
  const signal = AbortSignal.any([over.signal, settings.signal])
  const watch = new Watch(settings)
  const quit = () => over.abort()
  const draw = () => screen.draw(frameLines(watch.picture(), screen.size()))

  function pressed(key: string) {
    if (key === 'q') return quit()
    if (key === 'p') watch.isPaused = !watch.isPaused
    else if (key === 's') watch.order = watch.order === 'rate' ? 'time' : 'rate'
    draw()
  }

  async function askOnce() {
    try {
      watch.take({ page: await ask(signal), at: Date.now() })
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof NoMetricsError && watch.isFirst) throw error
      watch.miss(error, Date.now())
    }
    if (!watch.isPaused) draw()
  }

  const screen = openScreen(input, output, { pressed, resized: draw, gone: quit })
  try {
    draw()
    while (!signal.aborted) {
      if (!watch.isPaused) await askOnce()
      await pause(interval, undefined, { signal }).catch(() => undefined)
    }
  } finally {
    screen.close()
  }
}
