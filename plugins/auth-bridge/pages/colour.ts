// The operator's colour, made readable: WCAG 2.2 contrast (1.4.3 for text, 1.4.11 for what surrounds a button).

type Rgb = readonly [red: number, green: number, blue: number]

/** Without one of the operator's. */
export const DEFAULT_COLOUR = '#1f5fbf'
/** WCAG AA for text, with a little more for the rounding of browsers. */
const LEAST = 4.6
const STEPS = 40

const partAt = (colour: string, at: number) => Number.parseInt(colour.slice(at, at + 2), 16)

const parse = (colour: string): Rgb => [partAt(colour, 1), partAt(colour, 3), partAt(colour, 5)]

const format = (rgb: Rgb): string => `#${rgb.map(part => Math.round(part).toString(16).padStart(2, '0')).join('')}`

const linear = (part: number) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4)

function luminance(colour: string): number {
  const [red, green, blue] = parse(colour)
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

/** The contrast ratio of two colours such as `#0b5fff`, from 1 to 21. */
export function contrast(one: string, other: string): number {
  const [first, second] = [luminance(one), luminance(other)]
  return (Math.max(first, second) + 0.05) / (Math.min(first, second) + 0.05)
}

/** Black or white, whichever is read better on it; never less than 4.58. */
export const textOn = (background: string): string =>
  contrast(background, '#ffffff') >= contrast(background, '#000000') ? '#ffffff' : '#000000'

/** The colour, or the first on its way to black or white that is read on all of these, which are all dark or all light. */
export function readableOn(colour: string, backgrounds: readonly string[]): string {
  const end = parse(textOn(backgrounds[0] ?? '#ffffff'))
  const [red, green, blue] = parse(colour)
  const at = (share: number) =>
    format([red + (end[0] - red) * share, green + (end[1] - green) * share, blue + (end[2] - blue) * share])
  for (let step = 0; step < STEPS; step++) {
    const tried = at(step / STEPS)
    if (backgrounds.every(background => contrast(tried, background) >= LEAST)) return tried
  }
  return at(1)
}
