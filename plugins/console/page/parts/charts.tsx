// Charts as SVG: sparkline and timeline. Each has a text alternative.
import { Fragment } from 'preact'
import type { Stage } from '../../api.ts'
import { Text } from './text.tsx'

const WIDTH = 200
const HEIGHT = 40

interface SparklineProps {
  readonly values: readonly number[]
  /** Read by screen readers: what the line shows. */
  readonly label: string
  readonly isFault?: boolean
}

export function Sparkline({ values, label, isFault = false }: SparklineProps) {
  const highest = Math.max(...values, 0)
  const step = WIDTH / Math.max(1, values.length - 1)
  const points = values.map(
    (value, index) =>
      `${(index * step).toFixed(1)},${(HEIGHT - 2 - (highest === 0 ? 0 : value / highest) * (HEIGHT - 4)).toFixed(1)}`,
  )
  const tone = isFault ? ' fault' : ''
  return (
    <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      {points.length > 1 && (
        <>
          <path class={`area${tone}`} d={`M0,${HEIGHT} L${points.join(' L')} L${WIDTH},${HEIGHT} Z`} />
          <path class={`curve${tone}`} d={`M${points.join(' L')}`} />
        </>
      )}
    </svg>
  )
}

interface TimelineProps {
  readonly title: string
  readonly spans: ReadonlyArray<Stage & { readonly isFault?: boolean }>
  readonly total: number
  readonly textOf: (milliseconds: number) => string
}

/** One bar per span, on a track from 0 to `total`. */
export function Timeline({ title, spans, total, textOf }: TimelineProps) {
  const scale = 100 / Math.max(total, Number.EPSILON)
  return (
    <section class="stack">
      <h3>{title}</h3>
      <div class="timeline">
        {spans.map(({ name, start, ms, isFault = false }) => (
          <Fragment key={`${name} ${start}`}>
            <span class="mono">
              <Text value={name} most={40} />
            </span>
            <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
              <rect class="track" x="0" y="3.5" width="100" height="3" />
              <rect
                class={isFault ? 'bars fault' : 'bars'}
                x={Math.min(99, start * scale)}
                y="1.5"
                width={Math.max(1, ms * scale)}
                height="7"
              />
            </svg>
            <span class="number small">{textOf(ms)}</span>
          </Fragment>
        ))}
      </div>
    </section>
  )
}
